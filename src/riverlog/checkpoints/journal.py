"""The topic behind a checkpoint store, through the client: one writer at a time, whole transactions, reads by offset.

Who opens the journal fences whoever had it before (`Replaced`) and aborts what that one left open. `write` returns once
the records are kept. After any exception of `write` nobody knows what is kept: the journal is closed, and another one
opened and read.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

from riverlog.checkpoints.records import CHUNKS, FACTS, PARTITIONS, NewRecord
from riverlog.client.admin import Admin
from riverlog.client.cluster import Cluster
from riverlog.client.consumer import Consumer
from riverlog.client.errors import KafkaError, ProducerFenced, TimedOut, TransactionAborted
from riverlog.client.fetched import ConsumerRecord
from riverlog.client.offsets import IsolationLevel, list_offsets
from riverlog.client.ports import Ports
from riverlog.client.producer import Producer
from riverlog.client.reading import read_at
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_OFFSET, TopicPartition
from riverlog.model.limits import CHECKPOINT_CHUNK_BYTES

TOPIC: Final = "__checkpoints"
TRANSACTIONAL_ID: Final = "riverlog-checkpoints"
_CONFIGS: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(64 * 1024 * 1024),
    "delete.retention.ms": str(10 * 60_000),  # whoever opens the store reads for less long, and nobody else reads
}
_FETCH_BYTES_MAX: Final = CHECKPOINT_CHUNK_BYTES + 256 * 1024
_ATTEMPTS_MAX: Final = 5
_RECORDS_PER_TURN: Final = 256


class Replaced(Exception):
    """Another store writes the topic from here on."""


class Journal:
    """Reads and writes the topic."""

    def __init__(self, bootstrap: str, *, ports: Ports | None = None) -> None:
        self._bootstrap = bootstrap
        self._ports = ports
        self._producer = Producer(
            bootstrap, transactional_id=TRANSACTIONAL_ID, client_id="riverlog-checkpoints", ports=ports
        )
        self._cluster = Cluster(bootstrap, ports=ports, client_id="riverlog-checkpoints")

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
        except BaseException:
            await self._cluster.close()
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
        """Write records as one transaction, and give their offsets once they are kept."""
        for _ in range(_ATTEMPTS_MAX):
            try:
                return await self._transaction(records)
            except TransactionAborted:
                continue
            except ProducerFenced as problem:
                raise Replaced from problem
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
        offsets: list[int] = [delivery.result().offset for delivery in deliveries]
        if NO_OFFSET in offsets:  # kept, by an answer that was lost: only reading tells where
            raise TimedOut(f"{TOPIC} does not say where records are that it took before")
        return offsets

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
