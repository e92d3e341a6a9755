"""The topic behind a checkpoint store, through the client: one writer, all of a write or none of it, reads by offset.

To open the journal fences whoever had it before (`WriterFenced`) and aborts what that one left open. `write` returns
once the records are kept. After any exception of `write` nobody knows what is kept: the journal is closed, and another
one opened and read. Small writes are one batch, which costs a node about half as much
(docs/adr/0018-a-batch-instead-of-a-transaction.md); others are transactions.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from typing import Final

from riverlog.checkpoints.limits import CHECKPOINT_CHUNK_BYTES
from riverlog.checkpoints.records import CHUNKS, FACTS, CheckpointRecord
from riverlog.client.admin.admin import Admin
from riverlog.client.consumer.consumer import Consumer
from riverlog.client.consumer.fetched_records import ConsumerRecord
from riverlog.client.consumer.record_lookup import read_at
from riverlog.client.errors import KafkaError, ProducerFenced, TimedOut, TransactionAborted, check
from riverlog.client.network.cluster import Cluster
from riverlog.client.network.security import Security
from riverlog.client.offsets import IsolationLevel, list_offsets
from riverlog.client.ports import Ports
from riverlog.client.producer.single_writer import OnlyWriter
from riverlog.model.checkpoint_topic import (
    CHECKPOINTS_CONFIGS,
    CHECKPOINTS_PARTITIONS,
    CHECKPOINTS_TOPIC,
    CHECKPOINTS_TRANSACTIONAL_ID,
    CLEANUP_POLICY,
    MAX_MESSAGE_BYTES,
    unfit_settings,
)
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_OFFSET, TopicId, TopicPartition
from riverlog.model.transactions import PRODUCER_EPOCH_MAX
from riverlog.observe.logging import get_logger
from riverlog.records.record import record_bytes_max
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

TOPIC: Final = CHECKPOINTS_TOPIC
TRANSACTIONAL_ID: Final = CHECKPOINTS_TRANSACTIONAL_ID
_FACTS: Final = TopicPartition(TOPIC, FACTS)
_FETCH_BYTES_MAX: Final = CHECKPOINT_CHUNK_BYTES + 256 * 1024
_ATTEMPTS_MAX: Final = 5
_CLOSE_SECONDS_MAX: Final = 10.0
"""How long what is under way may take at the end: its topic may be gone."""
_RECORDS_PER_TURN: Final = 256
_OPENED: Final = b"journal:opened"
"""The key of what is written to lock others out; it says nothing."""
_BATCH_BYTES_MAX: Final = 256 * 1024
"""What is written as one batch at most."""
_IDLE_SECONDS_MAX: Final = 60.0
"""Who has written nothing for longer asks the coordinator, by a transaction, whether it is still the only writer."""


class WriterFenced(Exception):
    """Another store writes the topic from here on."""


class TopicGone(Exception):
    """The topic that was written so far is not there any more, or another one is there by its name."""


class Journal:
    """Reads and writes the topic."""

    def __init__(
        self,
        bootstrap: str,
        *,
        ports: Ports | None = None,
        security: Security | None = None,
        topic_id: TopicId | None = None,
    ) -> None:
        """Describe the journal; with a topic's id it opens that one and no other."""
        self.topic_id = topic_id
        """Which topic it is; None before it is open."""
        self._bootstrap = bootstrap
        self._ports = ports
        self._security = security
        self._producer = OnlyWriter(
            bootstrap,
            transactional_id=TRANSACTIONAL_ID,
            client_id="riverlog-checkpoints",
            ports=ports,
            security=security,
        )
        self._cluster = Cluster(bootstrap, ports=ports, client_id="riverlog-checkpoints", security=security)
        self._written_at = -math.inf
        self._log = get_logger("riverlog.checkpoints")

    async def open(self) -> None:
        """Create the topic where it was never there, see that it keeps all, and lock out whoever wrote it before."""
        async with self._admin() as admin:
            await self._cluster.start()
            if self.topic_id is None:
                await self._create(admin)
            else:
                await self.check()
            await self._check_settings(admin)
            try:
                await self._producer.start()
                await self._lock_out(admin)
            except BaseException:
                await self.close()
                raise

    async def close(self) -> None:
        """Close all connections; a transaction that is open is aborted."""
        try:
            async with asyncio.timeout(_CLOSE_SECONDS_MAX):
                await self._producer.close()
        except (KafkaError, TimeoutError):
            pass  # what was not kept was not answered for either
        finally:
            await self._cluster.close()

    async def check(self) -> None:
        """Raise TopicGone where the topic is not there any more, KafkaError where nobody says."""
        asked = MetadataRequest([MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
        response: MetadataResponse = await self._cluster.ask_any(asked)
        (found,) = response.topics
        if found.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            check(found.error_code, f"the topic {TOPIC}")
            if found.topic_id == self.topic_id:
                return
        raise TopicGone(
            f"the topic {TOPIC} was deleted under the checkpoint store, and every checkpoint with it; "
            "restart the node to begin with none"
        )

    async def facts(self) -> AsyncIterator[ConsumerRecord]:
        """Yield all records of partition 0."""
        async for record in self._records(FACTS, 0):
            if record.key != _OPENED:
                yield record

    async def chunks(self, first_offset: int) -> AsyncIterator[ConsumerRecord]:
        """Yield the records of partition 1 from this offset on."""
        async for record in self._records(CHUNKS, first_offset):
            yield record

    async def chunks_end(self) -> int:
        """Return the offset behind the last chunk."""
        return await self._end(TopicPartition(TOPIC, CHUNKS), IsolationLevel.READ_UNCOMMITTED)

    async def read(self, partition: int, offset: int) -> ConsumerRecord | None:
        """Return one record; None where compaction has removed it."""
        return await read_at(self._cluster, TopicPartition(TOPIC, partition), offset, bytes_max=_FETCH_BYTES_MAX)

    async def write(self, records: Sequence[CheckpointRecord]) -> list[int]:
        """Write all records or none, and return their offsets once they are kept."""
        try:
            offsets = await (
                self._write_batch(records) if self._fits_batch(records) else self._write_transaction(records)
            )
        except ProducerFenced as problem:
            raise WriterFenced from problem
        if NO_OFFSET in offsets:  # kept, by an answer that was lost: only reading shows where
            raise TimedOut(f"{TOPIC} does not say where records are that it took before")
        self._written_at = self._now
        return offsets

    def _admin(self) -> Admin:
        return Admin(self._bootstrap, client_id="riverlog-checkpoints", ports=self._ports, security=self._security)

    async def _create(self, admin: Admin) -> None:
        try:
            await admin.create_topic(TOPIC, partitions=CHECKPOINTS_PARTITIONS, configs=dict(CHECKPOINTS_CONFIGS))
        except KafkaError as problem:
            if problem.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    async def _check_settings(self, admin: Admin) -> None:
        """Mend a topic that somebody else made, before it loses anything; KafkaError where that may not be."""
        found = await admin.describe_configs(topic=TOPIC, names=[CLEANUP_POLICY, MAX_MESSAGE_BYTES])
        fit = unfit_settings({name: entry.value for name, entry in found.items() if entry.value is not None})
        if fit:
            self._log.warning(
                "the topic of checkpoints had settings with which they are lost", topic=TOPIC, set=str(fit)
            )
            await admin.alter_configs(fit, topic=TOPIC)
        (topic,) = await admin.describe_topics(TOPIC)
        self.topic_id = topic.topic_id
        if len(topic.partitions) < CHECKPOINTS_PARTITIONS:
            await admin.create_partitions(TOPIC, CHECKPOINTS_PARTITIONS)

    async def _lock_out(self, admin: Admin) -> None:
        """Fence the journals that were opened before from partition 0; partition 1 takes only transactions."""
        known = await admin.describe_producers([_FACTS])
        others = [each.producer_id for each in known if each.producer_epoch < PRODUCER_EPOCH_MAX]
        await self._producer.lock_out(_FACTS, others, [(_OPENED, b"")])
        self._written_at = self._now

    def _fits_batch(self, records: Sequence[CheckpointRecord]) -> bool:
        size = sum(record_bytes_max(record.key, record.value) for record in records)
        return (
            size <= _BATCH_BYTES_MAX
            and all(record.partition == FACTS for record in records)
            and self._now - self._written_at <= _IDLE_SECONDS_MAX
        )

    @property
    def _now(self) -> float:
        return self._cluster.ports.clock.monotonic()

    async def _write_batch(self, records: Sequence[CheckpointRecord]) -> list[int]:
        base_offset = await self._producer.write_alone(_FACTS, [(key, value) for _, key, value in records])
        return [base_offset if base_offset == NO_OFFSET else base_offset + delta for delta in range(len(records))]

    async def _write_transaction(self, records: Sequence[CheckpointRecord]) -> list[int]:
        for _ in range(_ATTEMPTS_MAX):
            try:
                return await self._transaction(records)
            except TransactionAborted:
                continue
        raise TimedOut(f"{TOPIC} took no transaction in {_ATTEMPTS_MAX} attempts")

    async def _transaction(self, records: Sequence[CheckpointRecord]) -> list[int]:
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
        """Yield what is committed. All is: who wrote before is fenced, and nobody else writes here."""
        partition = TopicPartition(TOPIC, index)
        end = await self._end(partition, IsolationLevel.READ_UNCOMMITTED)
        attempt = 0
        while await self._end(partition, IsolationLevel.READ_COMMITTED) < end:  # a marker is on its way
            attempt += 1
            await asyncio.sleep(self._producer.backoff(attempt))
        async with Consumer(
            self._bootstrap,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            security=self._security,
            ports=self._ports,
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
