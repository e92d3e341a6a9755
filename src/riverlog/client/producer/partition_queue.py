"""The batches of one partition, in order, with the sequences that make a retry harmless.

    open -> waiting -> in flight -> acknowledged
              ^            |
              +- retrying -+--> failed

When a batch comes back, nothing new is sent until the others in flight are back too; then all are sent again, in their
order and with their sequences, so a broker that has some of them already says so instead of appending them twice. It
knows the last five batches of a producer, so no batch is sent that is the fifth behind one in flight, or further.
Pure bookkeeping: it neither waits nor sends.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Final

from riverlog.client.errors import KafkaError
from riverlog.client.producer.deliveries import Batch, EncodedBatch
from riverlog.model.ids import (
    NO_SEQUENCE,
    NO_TOPIC_ID,
    NodeId,
    Offset,
    ProducerEpoch,
    ProducerId,
    TopicId,
    TopicPartition,
)
from riverlog.model.limits import PRODUCER_BATCHES_REMEMBERED
from riverlog.records.batch import Compression
from riverlog.records.record import BatchBuilder

SEQUENCE_MASK: Final = 0x7FFF_FFFF
NEVER: Final = float("inf")


class PartitionQueue:
    """All unfinished batches of one partition."""

    def __init__(self, partition: TopicPartition, *, idempotent: bool, transactional: bool = False) -> None:
        self.partition = partition
        self.in_flight: list[Batch] = []  # in the order of sending
        self.in_flight_node: NodeId | None = None
        self.attempts = 0
        self.not_before = 0.0
        self.last_problem: KafkaError | None = None
        self._idempotent = idempotent
        self._transactional = transactional
        self._waiting: deque[Batch] = deque()  # only the last may be open
        self._retrying: list[Batch] = []  # came back; wait until nothing is in flight
        self._producer: tuple[ProducerId, ProducerEpoch] | None = None
        self._batches_started = 0
        self._next_sequence = 0
        self._topic_id = NO_TOPIC_ID
        self._is_known = not idempotent  # whether the broker has a batch with our numbers: until then any passes
        self._last_acknowledged = 0  # the order of the last batch that the broker has said it has
        self._has_gap = False  # a numbered batch failed for good: the broker may lack its sequence
        self._must_renumber = False  # the broker lacks a sequence for certain, and all that came behind it

    def __bool__(self) -> bool:
        return bool(self._waiting or self._retrying or self.in_flight)

    def batches(self) -> Iterator[Batch]:
        yield from self.in_flight
        yield from self._retrying
        yield from self._waiting

    def open_batch(self, size: int, batch_bytes_max: int) -> Batch | None:
        """Return the batch that takes a record of `size` more bytes, if there is one."""
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
        builder = BatchBuilder(compression, level=level, transactional=self._transactional)
        return self.add(builder, now=now, deadline=deadline, loop=loop)

    def add(
        self, builder: BatchBuilder | EncodedBatch, *, now: float, deadline: float, loop: asyncio.AbstractEventLoop
    ) -> Batch:
        """Put a batch behind all others; one that is encoded already takes no more records."""
        self._batches_started += 1
        batch = Batch(self.partition, builder, order=self._batches_started, created=now, deadline=deadline, loop=loop)
        self._waiting.append(batch)
        return batch

    def belongs_to(self, topic_id: TopicId) -> None:
        """Take note of the topic's id: one that was created again knows none of our batches."""
        if topic_id != self._topic_id:
            self._topic_id = topic_id
            self._is_known = not self._idempotent
            self._last_acknowledged = 0

    def ready_at(self, *, linger_seconds: float, batch_bytes_max: int, hurry: bool) -> float:
        """Return from when on the next batch may be sent; NEVER while something else must happen first."""
        # A broker that knows no batch of this producer takes any sequence as the first: a second batch that overtakes
        # a refused first one would be accepted. So the first is alone until it is acknowledged.
        span = PRODUCER_BATCHES_REMEMBERED if self._is_known else 1
        if not self._waiting or self._retrying:
            return NEVER
        first = self._waiting[0]
        if self.in_flight and first.order - self.in_flight[0].order >= span:
            return NEVER  # behind those, the broker would forget the oldest, which may have to be sent again
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
        return batch

    @property
    def has_gap(self) -> bool:
        """Return whether the broker may lack a sequence that no batch has any more."""
        return self._has_gap

    def must_be_there(self, batch: Batch) -> bool:
        """Return whether the broker has a batch for certain, because it took a later one."""
        return batch.order < self._last_acknowledged

    def is_first_under_way(self, batch: Batch) -> bool:
        """Return whether no batch before this one is still under way."""
        return self.in_flight[0] is batch and not self._retrying

    def needs_new_epoch(self) -> bool:
        """Return whether sequences must start again before the next batch is sent."""
        if not self._idempotent or self._transactional or self.in_flight:
            return False  # of a transaction, the coordinator gives the epochs
        numbered = bool(self._waiting) and self._waiting[0].base_sequence != NO_SEQUENCE
        return self._must_renumber or (self._has_gap and not numbered)

    def start_epoch(self, producer_id: ProducerId, producer_epoch: ProducerEpoch) -> None:
        """Start sequences at 0 again under this producer id and epoch; nothing may be in flight."""
        assert not self.in_flight
        self._producer = (producer_id, producer_epoch)
        self._next_sequence = self._last_acknowledged = 0
        self._has_gap = self._must_renumber = self._is_known = False
        for batch in self._waiting:
            batch.base_sequence = NO_SEQUENCE

    def number(self, batch: Batch, producer_id: ProducerId, producer_epoch: ProducerEpoch) -> None:
        """Assign its sequence to a batch that is sent for the first time; a repeated one keeps what it has."""
        if batch.base_sequence != NO_SEQUENCE:
            return
        if self._producer is None:
            self._producer = (producer_id, producer_epoch)
        batch.number(*self._producer, self._next_sequence)
        self._next_sequence = (self._next_sequence + batch.count) & SEQUENCE_MASK

    def acknowledged(self, batch: Batch, base_offset: Offset, log_append_time_ms: int) -> None:
        self._land(batch)
        self._is_known = True
        self._last_acknowledged = max(self._last_acknowledged, batch.order)
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
        if self.is_first_under_way(batch):
            self._must_renumber = True
        self.came_back(batch, problem, not_before=not_before)

    def failed(self, batch: Batch, error: KafkaError) -> None:
        self._land(batch)
        self._has_gap = self._has_gap or batch.base_sequence != NO_SEQUENCE
        batch.fail(error)
        self._gather()

    def discard(self, error: KafkaError) -> list[Batch]:
        """Fail every batch that is not in flight and give them."""
        discarded = [*self._retrying, *self._waiting]
        self._retrying.clear()
        self._waiting.clear()
        for batch in discarded:
            self._has_gap = self._has_gap or batch.base_sequence != NO_SEQUENCE
            batch.fail(error)
        return discarded

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
