"""Transactions that one process writes and another one ends, on any cluster of Kafka's kind.

    async with HandingProducer("127.0.0.1:9092", transactional_id="orders-3-0") as producer:      # in a task
        ...
        handed = await producer.hand_over()                # goes to the driver; None where nothing was written

    async with Ender("127.0.0.1:9092") as ender:           # in the driver
        await ender.end(handed, committed=True)

Each has a transactional id of its own, so each is decided by itself: many of them are not one decision, as those of
`shared_transactions` are. A transaction that nobody ends is aborted when its time is up.
"""

from dataclasses import dataclass
from typing import Any, Final, Self

from riverlog.client.lifetime import Startable
from riverlog.client.network.cluster import Cluster
from riverlog.client.network.coordinator import TransactionCoordinator, asking_again
from riverlog.client.network.security import Security
from riverlog.client.ports import Ports
from riverlog.client.producer.producer import Producer
from riverlog.client.producer.sender import Sender
from riverlog.client.producer.transactions import Idle, Transactions, version_max
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.end_txn import EndTxnRequest, EndTxnResponse


@dataclass(frozen=True, slots=True)
class HandedTransaction:
    """A transaction that is open: whose it is, and by which producer it was written."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class HandingProducer(Producer):
    """A producer with one transaction, open from the start, which is handed over or aborted."""

    async def _start_transactions(self, sender: Sender) -> Transactions:
        self._handed = self._transactions_as(_Handed, sender)
        await self._handed.start()
        await self._handed.begin()
        return self._handed

    async def hand_over(self) -> HandedTransaction | None:
        """Wait until all that was sent is kept, write nothing any more, and give what is needed to end it."""
        await self.flush()
        return self._handed.hand_over()


class _Handed(Transactions):
    """One transaction, which others end."""

    def hand_over(self) -> HandedTransaction | None:
        self.check_open()
        self._state = Idle()
        if not self._touched:
            return None
        return HandedTransaction(self.transactional_id, self._producer_id, self._producer_epoch)


class AdoptingProducer(Producer):
    """A producer that goes on as one who took over the transactional id before; it fences nobody."""

    def __init__(self, bootstrap: str, *, transactional_id: str, producer: tuple[int, int], **options: Any) -> None:
        """Describe it; `producer` is the id and epoch to write as. `options` are those of `Producer`."""
        super().__init__(bootstrap, transactional_id=transactional_id, **options)
        self._adopted = producer

    @property
    def identity(self) -> tuple[int, int]:
        """Return the id and epoch that it writes as now; each transaction may bring another epoch."""
        assert isinstance(self._transactions, _Adopted), "it was started"
        return self._transactions.identity

    async def _start_transactions(self, sender: Sender) -> Transactions:
        transactions = self._transactions_as(_Adopted, sender)
        await transactions.adopt(*self._adopted)
        return transactions


class _Adopted(Transactions):
    """The transactions of a producer that somebody else has started."""

    @property
    def identity(self) -> tuple[int, int]:
        return self._producer_id, self._producer_epoch

    async def adopt(self, producer_id: int, producer_epoch: int) -> None:
        await self._again(self._learn_rules)
        self._write_as(producer_id, producer_epoch)
        self._sender.version_max = self._version_max(ApiKey.PRODUCE)


_SECONDS_MAX: Final = 60.0


class Ender(Startable):
    """Ends transactions that were handed over."""

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "riverlog-ender",
        request_timeout_ms: int = 30_000,
        seconds_max: float = _SECONDS_MAX,
        security: Security | None = None,
        ports: Ports | None = None,
    ) -> None:
        self._cluster = Cluster(
            bootstrap, ports=ports, client_id=client_id, request_timeout_ms=request_timeout_ms, security=security
        )
        self._seconds_max = seconds_max

    async def start(self) -> Self:
        async with self._cluster.starting():
            return self

    async def close(self) -> None:
        await self._cluster.close()

    async def end(self, handed: HandedTransaction, *, committed: bool) -> None:
        """Commit or abort; to repeat it changes nothing. ProducerFenced where it was aborted by time or a successor."""
        coordinator = TransactionCoordinator(self._cluster, handed.transactional_id)
        await asking_again(
            self._cluster, lambda: _end(coordinator, handed, committed=committed), seconds=self._seconds_max
        )


async def _end(coordinator: TransactionCoordinator, handed: HandedTransaction, *, committed: bool) -> None:
    connection = await coordinator.connection()
    request = EndTxnRequest(
        transactional_id=handed.transactional_id,
        producer_id=handed.producer_id,
        producer_epoch=handed.producer_epoch,
        committed=committed,
    )
    response: EndTxnResponse = await coordinator.ask(request, version_max=version_max(ApiKey.END_TXN, connection))
    coordinator.check(response.error_code, "the end of a transaction")
