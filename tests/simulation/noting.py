"""Transactional producers that note in a history what they do, as far as their own process knows it.

The history is told before the act and again when its outcome is known. A process that dies in between leaves the
outcome unknown, which accuses nobody.
"""

from collections.abc import Mapping
from typing import Any

from riverlog.client.consumer.commits import CommittedOffset, GroupMetadata
from riverlog.client.errors import KafkaError
from riverlog.client.ports import Ports
from riverlog.client.producer.deliveries import Delivery
from riverlog.client.producer.producer import Producer
from riverlog.client.producer.sender import Sender
from riverlog.client.producer.transactions import Broken, Open, Settling, Transactions
from riverlog.model.ids import TopicPartition
from riverlog.records.record import HeadersLike
from riverlog.verify.history import History, Transaction, Write
from tests.simulation.machine import ADDRESS


class NotingProducer(Producer):
    """A producer of a history. `older` ones end their transactions as clients before KIP-890 did."""

    def __init__(self, history: History, name: str, *, ports: Ports, older: bool = False, **options: Any) -> None:
        super().__init__(ADDRESS, ports=ports, linger_ms=1, batch_bytes_max=400, **options)
        self.name = name
        self.sent: list[tuple[Write, Delivery]] = []
        """What has no outcome in the history yet."""
        self._history = history
        self._older = older

    @property
    def transaction_noted(self) -> Transaction | None:
        """Return the transaction that is open, or was last."""
        return self._transactions.noted if isinstance(self._transactions, _NotingTransactions) else None

    @property
    def is_open(self) -> bool:
        """Return whether a transaction waits for its end."""
        return self._transactions is not None and isinstance(self._transactions.state, Open | Settling | Broken)

    def send_soon(
        self,
        topic: str,
        value: bytes | str | None = None,
        *,
        key: bytes | str | None = None,
        headers: HeadersLike = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Delivery:
        assert isinstance(key, str)
        assert partition is not None
        where = TopicPartition(topic, partition)
        write = self._history.write(self.name, where, key, transaction=self.transaction_noted)
        try:
            delivery = super().send_soon(
                topic, value, key=key, headers=headers, partition=partition, timestamp_ms=timestamp_ms
            )
        except KafkaError:
            self._history.refused(write)
            raise
        self.sent.append((write, delivery))
        return delivery

    def note_acknowledgements(self) -> None:
        """Note which of the records are kept; late is good enough."""
        for write, delivery in self.sent:
            if delivery.done and delivery.error is None:
                self._history.acknowledged(write, delivery.result().offset)
        self.sent = [each for each in self.sent if not each[1].done]

    async def vanish(self) -> None:
        """End at once; nobody is told."""
        self.note_acknowledgements()
        await self._shut()

    async def _start_transactions(self, sender: Sender) -> Transactions:
        transactions = self._transactions_as(_NotingTransactions, sender)
        transactions.history, transactions.producer, transactions.older = self._history, self, self._older
        await transactions.start()
        return transactions


class _NotingTransactions(Transactions):
    """The transactions of a producer of a history."""

    history: History
    producer: NotingProducer
    older: bool
    noted: Transaction | None = None

    async def begin(self) -> None:
        await super().begin()
        self.noted = self.history.begin(self.producer.name)

    async def commit(self) -> None:
        assert self.noted is not None
        if self.noted.committing is None:
            self.history.committing(self.noted)
        await super().commit()
        self.producer.note_acknowledgements()
        self.history.committed(self.noted)

    async def abort(self) -> None:
        assert self.noted is not None
        await super().abort()
        self.producer.note_acknowledgements()
        self.history.aborted(self.noted)

    async def send_offsets(self, metadata: GroupMetadata, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        commits = [
            self.history.commit(metadata.group, partition, at.offset, transaction=self.noted)
            for partition, at in offsets.items()
        ]
        await super().send_offsets(metadata, offsets)
        for commit in commits:
            self.history.commit_acknowledged(commit)

    async def _take_over(self) -> None:
        await super()._take_over()
        self._by_epoch = self._by_epoch and not self.older
