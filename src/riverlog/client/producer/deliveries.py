"""Records on their way: the batch that carries them and the handle that its sender holds.

Records of a batch are acknowledged and refused together, so one future serves them all; a Delivery is only a
place in it, and knows which reason is its own where a batch was refused for some of its records. Pure bookkeeping:
nothing here waits for a broker or sends.
"""

import asyncio
from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

from riverlog.client.errors import KafkaError, RecordsRefused
from riverlog.model.ids import (
    NO_OFFSET,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Offset,
    ProducerEpoch,
    ProducerId,
    TopicPartition,
)
from riverlog.records.batch import set_producer
from riverlog.records.record import BatchBuilder, HeadersLike


class RecordMetadata(NamedTuple):
    """Where a record lies. The offset is -1 where it is not known: with acks=0, and for some repeated sends."""

    topic: str
    partition: int
    offset: Offset
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """A batch that is encoded already, with a checksum and nobody's name: its sender writes both into `content`."""

    partition: TopicPartition
    content: memoryview
    count: int


class Batch:
    """Records that are sent, acknowledged and refused together. One future serves them all."""

    __slots__ = (
        "_builder",
        "_bytes",
        "base_sequence",
        "count",
        "created",
        "deadline",
        "future",
        "log_append_time_ms",
        "observed",
        "order",
        "partition",
        "size",
    )

    def __init__(
        self,
        partition: TopicPartition,
        builder: BatchBuilder | EncodedBatch,
        *,
        order: int,
        created: float,
        deadline: float,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.partition = partition
        self.order = order
        """Its place among all batches of the partition: a retry never changes it."""
        self.created = created
        self.deadline = deadline
        self.future: asyncio.Future[Offset] = loop.create_future()
        self.observed = False
        """Whether somebody asked for the outcome; a failure that nobody saw is raised by flush."""
        self.base_sequence = NO_SEQUENCE
        self.log_append_time_ms = NO_TIMESTAMP
        self.count = builder.count
        self._builder: BatchBuilder | None = None
        self._bytes: bytearray | memoryview | None = None
        if isinstance(builder, EncodedBatch):
            self.size = len(builder.content)
            self._bytes = builder.content
        else:
            self.size = builder.size
            self._builder = builder

    @property
    def is_open(self) -> bool:
        return self._builder is not None

    @property
    def done(self) -> bool:
        return self.future.done()

    @property
    def error(self) -> KafkaError | None:
        """Return why the batch failed, if it did."""
        error = self.future.exception() if self.future.done() else None
        assert error is None or isinstance(error, KafkaError)
        return error

    def append(self, key: bytes | None, value: bytes | None, headers: HeadersLike, timestamp_ms: int) -> int:
        builder = self._builder
        assert builder is not None, "a batch that was sent takes no more records"
        delta = builder.append(key, value, headers, timestamp_ms=timestamp_ms)
        self.count = delta + 1
        self.size = builder.size
        return delta

    def close(self) -> None:
        """Compress the records; from here on the batch takes no more."""
        if self._builder is not None:
            self._bytes = self._builder.build()
            self._builder = None

    def number(self, producer_id: ProducerId, producer_epoch: ProducerEpoch, base_sequence: int) -> None:
        """Assign the batch its place in the partition's sequence."""
        self.close()
        assert self._bytes is not None
        self.base_sequence = base_sequence
        set_producer(memoryview(self._bytes), producer_id, producer_epoch, base_sequence)

    @property
    def bytes(self) -> memoryview:
        self.close()
        assert self._bytes is not None
        return memoryview(self._bytes)

    def succeed(self, base_offset: Offset, log_append_time_ms: int = NO_TIMESTAMP) -> None:
        self._bytes = None
        self.log_append_time_ms = log_append_time_ms
        if not self.future.done():
            self.future.set_result(base_offset)

    def fail(self, error: KafkaError) -> None:
        self._builder = self._bytes = None
        if not self.future.done():
            self.future.set_exception(error)
            self.future.exception()  # mark as seen: whether somebody saw it is kept in `observed`


class Delivery:
    """A record handed over for sending. Await it for its RecordMetadata, or never look at it again."""

    __slots__ = ("_batch", "_delta", "_placing", "observed", "timestamp_ms")
    count = 1

    def __init__(self, timestamp_ms: int) -> None:
        self.timestamp_ms = timestamp_ms
        self.observed = False
        self._batch: Batch | None = None
        self._delta = 0
        self._placing: asyncio.Future[None] | None = None

    def place(self, batch: Batch, delta: int) -> None:
        """Note that the record is now in a batch."""
        self._batch = batch
        self._delta = delta
        if self.observed:
            batch.observed = True

    def wait_for_place(self, placing: "asyncio.Future[None]") -> None:
        """Note that the partition is not known yet: `placing` ends when it is, or fails."""
        self._placing = placing

    def refuse(self, error: KafkaError) -> None:
        """Note that the record has no place."""
        assert self._placing is not None
        self._placing = self._placing.get_loop().create_future()
        self._placing.set_exception(error)
        self._placing.exception()

    @property
    def batch_future(self) -> "asyncio.Future[Offset] | None":
        """Return the future of the whole batch, for those who watch many records; None while there is no batch yet."""
        return None if self._batch is None else self._batch.future

    @property
    def done(self) -> bool:
        """Return whether the outcome is known."""
        return self._batch.done if self._batch is not None else self.error is not None

    @property
    def error(self) -> KafkaError | None:
        """Return why the record was not delivered, if that is known; this does not count as having been told."""
        if self._batch is not None:
            error = self._batch.error
            return error.of_record(self._delta) if isinstance(error, RecordsRefused) else error
        problem = self._placing.exception() if self._placing is not None and self._placing.done() else None
        assert problem is None or isinstance(problem, KafkaError)
        return problem

    def result(self) -> RecordMetadata:
        """Return where the record lies or raise why it was not delivered; InvalidStateError before that is known."""
        self._observe()
        batch = self._batch
        if batch is None:
            assert self._placing is not None
            self._placing.result()
            raise asyncio.InvalidStateError("the record is not delivered yet")
        if (refused := self.error) is not None:
            raise refused
        base_offset = batch.future.result()
        offset = NO_OFFSET if base_offset == NO_OFFSET else Offset(base_offset + self._delta)
        timestamp_ms = self.timestamp_ms if batch.log_append_time_ms == NO_TIMESTAMP else batch.log_append_time_ms
        return RecordMetadata(batch.partition.topic, batch.partition.partition, offset, timestamp_ms)

    def __await__(self) -> Generator[object, None, RecordMetadata]:
        # Shielded: the futures belong to many records, and one waiter's cancellation is its own.
        self._observe()
        while not self.done:
            if self._batch is not None:
                try:
                    yield from asyncio.shield(self._batch.future).__await__()
                except RecordsRefused:
                    break  # for a reason of its own
            elif self._placing is not None:
                yield from asyncio.shield(self._placing).__await__()
        return self.result()

    def _observe(self) -> None:
        self.observed = True
        if self._batch is not None:
            self._batch.observed = True

    def __repr__(self) -> str:
        if not self.done:
            return "<Delivery under way>"
        try:
            return f"<Delivery {self.result()}>"
        except KafkaError as error:
            return f"<Delivery failed: {error}>"
