"""The topic behind a checkpoint store, through the client: one writer, all of a write or none of it, reads by offset.

Who opens the journal fences whoever had it before (`Replaced`) and aborts what that one left open. `write` returns once
the records are kept. After any exception of `write` nobody knows what is kept: the journal is closed, and another one
opened and read. Small writes are one batch, which costs a node about half as much
(docs/adr/0018-a-batch-instead-of-a-transaction.md); others are transactions.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from typing import Final

from riverlog.checkpoints.records import CHUNKS, FACTS, PARTITIONS, NewRecord
from riverlog.client.admin import Admin
from riverlog.client.cluster import Cluster
from riverlog.client.consumer import Consumer
from riverlog.client.errors import KafkaError, ProducerFenced, TimedOut, TransactionAborted
from riverlog.client.fetched import ConsumerRecord
from riverlog.client.offsets import IsolationLevel, list_offsets
from riverlog.client.only_writer import OnlyWriter
from riverlog.client.ports import Ports
from riverlog.client.reading import read_at
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_OFFSET, TopicPartition
from riverlog.model.limits import CHECKPOINT_CHUNK_BYTES
from riverlog.model.transactions import PRODUCER_EPOCH_MAX
from riverlog.records.record import record_bytes_max

TOPIC: Final = "__checkpoints"
TRANSACTIONAL_ID: Final = "riverlog-checkpoints"
_CONFIGS: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(64 * 1024 * 1024),
    "delete.retention.ms": str(10 * 60_000),  # whoever opens the store reads for less long, and nobody else reads
}
_FACTS: Final = TopicPartition(TOPIC, FACTS)
_FETCH_BYTES_MAX: Final = CHECKPOINT_CHUNK_BYTES + 256 * 1024
_ATTEMPTS_MAX: Final = 5
_RECORDS_PER_TURN: Final = 256
_OPENED: Final = b"journal:opened"
"""The key of what is written to lock others out; it says nothing."""
_BATCH_BYTES_MAX: Final = 256 * 1024
"""What is written as one batch at most."""
_REST_SECONDS_MAX: Final = 60.0
"""Who has written nothing for longer asks the coordinator, by a transaction, whether it is still the only writer."""


class Replaced(Exception):
    """Another store writes the topic from here on."""


class Journal:
    """Reads and writes the topic."""

    def __init__(self, bootstrap: str, *, ports: Ports | None = None) -> None:
        self._bootstrap = bootstrap
        self._ports = ports
        self._producer = OnlyWriter(
            bootstrap, transactional_id=TRANSACTIONAL_ID, client_id="riverlog-checkpoints", ports=ports
        )
        self._cluster = Cluster(bootstrap, ports=ports, client_id="riverlog-checkpoints")
        self._written_at = -math.inf

    async def open(self) -> None:
        """Create the topic where it is missing, and lock out whoever wrote it before."""
        async with Admin(self._bootstrap, client_id="riverlog-checkpoints", ports=self._ports) as admin:
            try:
                await admin.create_topic(TOPIC, partitions=PARTITIONS, configs=_CONFIGS)
            except KafkaError as problem:
                if problem.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise
            await self._cluster.start()
            try:
                await self._producer.start()
                await self._lock_out(admin)
            except BaseException:
                await self.close()
                raise

    async def close(self) -> None:
        """Let go of all connections; a transaction that is open is aborted."""
        try:
            await self._producer.close()
        except KafkaError:
            pass  # what was not kept was not answered for either
        finally:
            await self._cluster.close()

    async def facts(self) -> AsyncIterator[ConsumerRecord]:
        """Give all records of partition 0."""
        async for record in self._records(FACTS, 0):
            if record.key != _OPENED:
                yield record

    async def chunks(self, first_offset: int) -> AsyncIterator[ConsumerRecord]:
        """Give the records of partition 1 from this offset on."""
        async for record in self._records(CHUNKS, first_offset):
            yield record

    async def chunks_end(self) -> int:
        """Give the offset behind the last chunk."""
        return await self._end(TopicPartition(TOPIC, CHUNKS), IsolationLevel.READ_UNCOMMITTED)

    async def read(self, partition: int, offset: int) -> ConsumerRecord | None:
        """Give one record; None where compaction has removed it."""
        return await read_at(self._cluster, TopicPartition(TOPIC, partition), offset, bytes_max=_FETCH_BYTES_MAX)

    async def write(self, records: Sequence[NewRecord]) -> list[int]:
        """Write all records or none, and give their offsets once they are kept."""
        try:
            offsets = await (self._alone(records) if self._fits_alone(records) else self._together(records))
        except ProducerFenced as problem:
            raise Replaced from problem
        if NO_OFFSET in offsets:  # kept, by an answer that was lost: only reading tells where
            raise TimedOut(f"{TOPIC} does not say where records are that it took before")
        self._written_at = self._now
        return offsets

    async def _lock_out(self, admin: Admin) -> None:
        """Let partition 0 take no batch of a journal that was opened before; partition 1 takes only transactions."""
        known = await admin.describe_producers([_FACTS])
        others = [each.producer_id for each in known if each.producer_epoch < PRODUCER_EPOCH_MAX]
        await self._producer.lock_out(_FACTS, others, [(_OPENED, b"")])
        self._written_at = self._now

    def _fits_alone(self, records: Sequence[NewRecord]) -> bool:
        size = sum(record_bytes_max(record.key, record.value) for record in records)
        return (
            size <= _BATCH_BYTES_MAX
            and all(record.partition == FACTS for record in records)
            and self._now - self._written_at <= _REST_SECONDS_MAX
        )

    @property
    def _now(self) -> float:
        return self._cluster.ports.clock.monotonic()

    async def _alone(self, records: Sequence[NewRecord]) -> list[int]:
        base_offset = await self._producer.write_alone(_FACTS, [(key, value) for _, key, value in records])
        return [base_offset if base_offset == NO_OFFSET else base_offset + delta for delta in range(len(records))]

    async def _together(self, records: Sequence[NewRecord]) -> list[int]:
        for _ in range(_ATTEMPTS_MAX):
            try:
                return await self._transaction(records)
            except TransactionAborted:
                continue
        raise TimedOut(f"{TOPIC} took no transaction in {_ATTEMPTS_MAX} attempts")

    async def _transaction(self, records: Sequence[NewRecord]) -> list[int]:
        producer = self._producer
        await producer.begin()
        deliveries = []
        for index, (partition, key, value) in enumerate(records):
            if index % _RECORDS_PER_TURN == 0 or len(value or b"") >= CHECKPOINT_CHUNK_BYTES:
                await producer.ready(len(value or b"") + CHECKPOINT_CHUNK_BYTES)
            deliveries.append(producer.send_soon(TOPIC, value, key=key, partition=partition))
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            try:
                await producer.commit()
                break
            except TimedOut:
                if attempt == _ATTEMPTS_MAX:
                    raise
        return [delivery.result().offset for delivery in deliveries]

    async def _records(self, index: int, first_offset: int) -> AsyncIterator[ConsumerRecord]:
        """Give what is committed. All is: who wrote before is fenced, and nobody else writes here."""
        partition = TopicPartition(TOPIC, index)
        end = await self._end(partition, IsolationLevel.READ_UNCOMMITTED)
        attempt = 0
        while await self._end(partition, IsolationLevel.READ_COMMITTED) < end:  # a marker is on its way
            attempt += 1
            await asyncio.sleep(self._producer.backoff(attempt))
        async with Consumer(
            self._bootstrap, isolation_level="read_committed", auto_offset_reset="earliest", ports=self._ports
        ) as consumer:
            consumer.assign([partition])
            start = (await consumer.beginning_offsets([partition]))[partition]
            await consumer.seek(partition, max(first_offset, start))
            while await consumer.position(partition) < end:
                for record in await consumer.poll():
                    yield record

    async def _end(self, partition: TopicPartition, isolation: IsolationLevel) -> int:
        found = await list_offsets(self._cluster, {partition: "latest"}, isolation=isolation)
        return found[partition].offset
