"""Records on their way: the batches of one partition, in order, with the sequences that make a retry harmless.

    open -> waiting -> in flight -> acknowledged
              ^            |
              +--- retrying+--> failed

At most five batches of a partition are in flight. When one of them comes back, nothing new is sent until the
others are back too; then all are sent again, in their order and with their sequences, so a broker that has some
of them already says so instead of appending them twice. Pure bookkeeping: it neither waits nor sends.
"""

import asyncio
from collections import deque
from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

from riverlog.client.errors import KafkaError
from riverlog.model.ids import (
    NO_OFFSET,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    NodeId,
    Offset,
    ProducerEpoch,
    ProducerId,
    TopicPartition,
)
from riverlog.model.limits import PRODUCER_BATCHES_REMEMBERED
from riverlog.records.batch import Compression, set_producer
from riverlog.records.record import BatchBuilder, HeadersLike

SEQUENCE_MASK: Final = 0x7FFF_FFFF
NEVER: Final = float("inf")


class RecordMetadata(NamedTuple):
    """Where a record lies. The offset is -1 where it is not known: with acks=0, and for some repeated sends."""

    topic: str
    partition: int
    offset: Offset
    timestamp_ms: int


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
        builder: BatchBuilder,
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
        self.count = 0
        self.size = builder.size
        self._builder: BatchBuilder | None = builder
        self._bytes: bytearray | None = None

    @property
    def is_open(self) -> bool:
        return self._builder is not None

    @property
    def done(self) -> bool:
        return self.future.done()

    @property
    def error(self) -> KafkaError | None:
        """Say why the batch failed, if it did."""
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
        """Give the batch its place in the partition's sequence."""
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
    def done(self) -> bool:
        """Tell whether the outcome is known."""
        return self._batch.done if self._batch is not None else self.error is not None

    @property
    def error(self) -> KafkaError | None:
        """Say why the record was not delivered, if that is known; this does not count as having been told."""
        if self._batch is not None:
            return self._batch.error
        error = self._placing.exception() if self._placing is not None and self._placing.done() else None
        assert error is None or isinstance(error, KafkaError)
        return error

    def result(self) -> RecordMetadata:
        """Give where the record lies or raise why it was not delivered; InvalidStateError before that is known."""
        self._observe()
        batch = self._batch
        if batch is None:
            assert self._placing is not None
            self._placing.result()
            raise asyncio.InvalidStateError("the record is not delivered yet")
        base_offset = batch.future.result()
        offset = NO_OFFSET if base_offset == NO_OFFSET else Offset(base_offset + self._delta)
        timestamp_ms = self.timestamp_ms if batch.log_append_time_ms == NO_TIMESTAMP else batch.log_append_time_ms
        return RecordMetadata(batch.partition.topic, batch.partition.partition, offset, timestamp_ms)

    def __await__(self) -> Generator[object, None, RecordMetadata]:
        # Shielded: the futures belong to many records, and one waiter's cancellation is its own.
        self._observe()
        while not self.done:
            if self._batch is not None:
                yield from asyncio.shield(self._batch.future).__await__()
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


class PartitionQueue:
    """All unfinished batches of one partition."""

    def __init__(self, partition: TopicPartition, *, idempotent: bool) -> None:
        self.partition = partition
        self.in_flight: list[Batch] = []  # in the order of sending
        self.in_flight_node: NodeId | None = None
        self.attempts = 0
        self.not_before = 0.0
        self.last_problem: KafkaError | None = None
        self._idempotent = idempotent
        self._waiting: deque[Batch] = deque()  # only the last may be open
        self._retrying: list[Batch] = []  # came back; wait until nothing is in flight
        self._producer: tuple[ProducerId, ProducerEpoch] | None = None
        self._batches_started = 0
        self._next_sequence = 0
        self._is_known = not idempotent  # whether the broker has a batch with our numbers: until then any passes
        self._has_gap = False  # a numbered batch failed for good: the broker may lack its sequence
        self._must_renumber = False  # the broker lacks a sequence for certain, and all that came behind it

    def __bool__(self) -> bool:
        return bool(self._waiting or self._retrying or self.in_flight)

    def batches(self) -> Iterator[Batch]:
        yield from self.in_flight
        yield from self._retrying
        yield from self._waiting

    def open_batch(self, size: int, batch_bytes_max: int) -> Batch | None:
        """Give the batch that takes a record of `size` more bytes, if there is one."""
        if self._waiting:
            last = self._waiting[-1]
            if last.is_open and last.size + size <= batch_bytes_max:
                return last
        return None

    def start_batch(
        self,
        compression: Compression,
        level: int | None,
        *,
        now: float,
        deadline: float,
        loop: asyncio.AbstractEventLoop,
    ) -> Batch:
        builder = BatchBuilder(compression, level=level)
        self._batches_started += 1
        batch = Batch(self.partition, builder, order=self._batches_started, created=now, deadline=deadline, loop=loop)
        self._waiting.append(batch)
        return batch

    def ready_at(self, *, linger_seconds: float, batch_bytes_max: int, hurry: bool) -> float:
        """Say from when on the next batch may be sent; NEVER while something else must happen first."""
        # A broker that knows no batch of this producer takes any sequence as the first: a second batch that overtakes
        # a refused first one would be accepted. So the first is alone until it is acknowledged.
        in_flight_max = PRODUCER_BATCHES_REMEMBERED if self._is_known else 1
        if not self._waiting or self._retrying or len(self.in_flight) >= in_flight_max:
            return NEVER
        first = self._waiting[0]
        full = len(self._waiting) > 1 or first.size >= batch_bytes_max
        if hurry or full or not first.is_open:
            return self.not_before
        return max(self.not_before, first.created + linger_seconds)

    def peek(self) -> Batch:
        return self._waiting[0]

    def take(self, node: NodeId) -> Batch:
        """Move the first waiting batch into flight."""
        batch = self._waiting.popleft()
        self.in_flight.append(batch)
        self.in_flight_node = node
        batch.close()
        return batch

    def needs_new_epoch(self) -> bool:
        """Tell whether sequences must start again before the next batch is sent."""
        if not self._idempotent or self.in_flight:
            return False
        numbered = bool(self._waiting) and self._waiting[0].base_sequence != NO_SEQUENCE
        return self._must_renumber or (self._has_gap and not numbered)

    def start_epoch(self, producer_id: ProducerId, producer_epoch: ProducerEpoch) -> None:
        """Start sequences at 0 again under this producer id and epoch; nothing may be in flight."""
        assert not self.in_flight
        self._producer = (producer_id, producer_epoch)
        self._next_sequence = 0
        self._has_gap = self._must_renumber = self._is_known = False
        for batch in self._waiting:
            batch.base_sequence = NO_SEQUENCE

    def number(self, batch: Batch, producer_id: ProducerId, producer_epoch: ProducerEpoch) -> None:
        """Give a batch that is sent for the first time its sequence; a repeated one keeps what it has."""
        if batch.base_sequence != NO_SEQUENCE:
            return
        if self._producer is None:
            self._producer = (producer_id, producer_epoch)
        batch.number(*self._producer, self._next_sequence)
        self._next_sequence = (self._next_sequence + batch.count) & SEQUENCE_MASK

    def acknowledged(self, batch: Batch, base_offset: Offset, log_append_time_ms: int) -> None:
        self._land(batch)
        self._is_known = True
        self._has_gap = False  # the broker has this sequence, so it misses none before it
        self.attempts = 0
        self.last_problem = None
        batch.succeed(base_offset, log_append_time_ms)
        self._gather()

    def came_back(self, batch: Batch, problem: KafkaError, *, not_before: float) -> None:
        """Keep a batch for another attempt, once all others are back."""
        self._land(batch)
        self.last_problem = problem
        if batch.done:  # its time was up while it was in flight
            self._has_gap = True
        else:
            self._retrying.append(batch)
        self.not_before = max(self.not_before, not_before)
        self._gather()

    def out_of_order(self, batch: Batch, problem: KafkaError, *, not_before: float) -> None:
        """The broker misses a sequence before this one. If nothing before it is under way, it never got that one,
        nor this batch or any behind it: all of them can be numbered afresh without being appended twice."""
        if self.in_flight[0] is batch and not self._retrying:
            self._must_renumber = True
        self.came_back(batch, problem, not_before=not_before)

    def failed(self, batch: Batch, error: KafkaError) -> None:
        self._land(batch)
        self._has_gap = self._has_gap or batch.base_sequence != NO_SEQUENCE
        batch.fail(error)
        self._gather()

    def expire(self, now: float, error: KafkaError) -> list[Batch]:
        """Fail every batch whose time is up and give them. Those in flight stay in the line until they are back."""
        expired = [batch for batch in self.batches() if batch.deadline <= now and not batch.done]
        for batch in expired:
            if batch not in self.in_flight:
                self._has_gap = self._has_gap or batch.base_sequence != NO_SEQUENCE
                if batch in self._retrying:
                    self._retrying.remove(batch)
                else:
                    self._waiting.remove(batch)
            batch.fail(error)
        return expired

    def next_deadline(self) -> float:
        return min((batch.deadline for batch in self.batches() if not batch.done), default=NEVER)

    def _land(self, batch: Batch) -> None:
        self.in_flight.remove(batch)
        if not self.in_flight:
            self.in_flight_node = None

    def _gather(self) -> None:
        """Once nothing is in flight, put what came back in front of what waits, in its old order."""
        if self._retrying and not self.in_flight:
            self._retrying.sort(key=lambda batch: batch.order)
            self._waiting.extendleft(reversed(self._retrying))
            self._retrying.clear()
