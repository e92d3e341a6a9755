"""A producer that is the only one to write to a partition: what fits into one batch needs no transaction.

    async with OnlyWriter("127.0.0.1:9092", transactional_id="journal") as writer:
        await writer.lock_out(partition, others, [(b"opened", b"")])
        base_offset = await writer.write_alone(partition, [(b"key", b"value"), (b"another", None)])

A batch is kept as a whole or not at all. What a transaction gives beyond that is that who was replaced writes nothing
any more, since the coordinator knows it. Here the partition does: a batch names the writer's id and epoch, and a
partition takes none of an epoch older than one it has seen (`lock_out`). It forgets that when it has heard nothing of
the writer for `producer.id.expiration.ms`, a day: who has rested for a while writes a transaction first.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from riverlog.client.errors import Closed, KafkaError, ProducerFenced
from riverlog.client.network.coordinator import FENCED
from riverlog.client.producer.deliveries import EncodedBatch
from riverlog.client.producer.producer import Producer
from riverlog.client.producer.sender import Sender
from riverlog.client.producer.transactions import Idle, Transactions
from riverlog.model.ids import ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.transactions import PRODUCER_EPOCH_MAX
from riverlog.records.record import BatchBuilder

KeyAndValue = tuple[bytes | None, bytes | None]


class OnlyWriter(Producer):
    """Writes whole batches, beside the transactions of any producer with a transactional id. One call at a time."""

    _batches: "_Batches"
    _creates_topics = False  # where its topic is gone, an empty one is no help

    async def lock_out(
        self, partition: TopicPartition, others: Iterable[ProducerId], records: Sequence[KeyAndValue]
    ) -> None:
        """Fence those who wrote to the partition before, by writing these records.

        That is right behind `start`. Whoever had the transactional id last has the same producer id, in an older epoch;
        `others` are those whom the partition remembers, since an id whose epochs are used up is replaced.
        """
        for other in set(others) - {self._batches.producer_id}:
            with self._batches.written_as(other, PRODUCER_EPOCH_MAX):
                await self.write_alone(partition, records)
        await self.write_alone(partition, records)

    async def write_alone(self, partition: TopicPartition, records: Sequence[KeyAndValue]) -> int:
        """Write records as one batch, and give the offset of the first once they are kept.

        ProducerFenced says that another has taken over. After any other failure nobody knows whether they are kept, and
        this writer writes nothing any more.
        """
        self._require_transactions()
        builder, now_ms = BatchBuilder(), self._clock.wall_ms()
        for key, value in records:
            builder.append(key, value, timestamp_ms=now_ms)
        count, content = builder.count, memoryview(builder.build())
        await self.partitions(partition.topic)
        with self._batches.one():
            batch = await self._accept_encoded(EncodedBatch(partition, content, count))
            batch.observed = True
            return await asyncio.shield(batch.future)

    async def _start_transactions(self, sender: Sender) -> Transactions:
        self._batches = self._transactions_as(_Batches, sender)
        await self._batches.start()
        return self._batches


class _Batches(Transactions):
    """Transactions, and between two of them batches that belong to none."""

    _is_alone = False
    """Whether such a batch is under way."""

    @property
    def producer_id(self) -> ProducerId:
        return self._producer_id

    def check_open(self) -> None:
        """Raise where no record may be written now."""
        if not self._is_alone:
            super().check_open()

    def admits(self, partition: TopicPartition) -> bool:
        """Return whether a batch may be sent now: the coordinator need not know of one outside of transactions."""
        return self._is_alone or super().admits(partition)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Allow one batch to pass; where it fails, nothing passes any more."""
        if not isinstance(self._state, Idle) or self._is_alone:
            raise self._refusal()
        self._is_alone = True
        try:
            yield
        except BaseException as problem:
            self._lose(problem if isinstance(problem, KafkaError) else Closed("producer"))
            if isinstance(problem, KafkaError) and problem.code in FENCED:
                raise ProducerFenced(self.transactional_id) from problem
            raise
        finally:
            self._is_alone = False

    @contextmanager
    def written_as(self, producer_id: ProducerId, producer_epoch: ProducerEpoch) -> Iterator[None]:
        """Allow batches to pass in the name of another; then go on as oneself, who has written nothing yet."""
        self._sender.write_as(producer_id, producer_epoch)
        yield
        self._sender.write_as(self._producer_id, self._producer_epoch)
