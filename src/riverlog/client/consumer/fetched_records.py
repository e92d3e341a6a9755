"""Fetched bytes on their way to the reader: one partition's position, its undecoded batches, and what of them counts.

Batches are checked and decoded one at a time, when the reader comes to them. Control batches are never given out; at
`read_committed` neither are batches of transactions that were aborted.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from riverlog.client.errors import CorruptRecords, KafkaError
from riverlog.model.ids import NO_OFFSET, LeaderEpoch, Offset, ProducerId, TopicPartition
from riverlog.model.ports import Buffer
from riverlog.records.batch import HEADER_BYTES, BatchHeader, headers, read_header
from riverlog.records.errors import CorruptBatch
from riverlog.records.record import ControlType, Header, Record, check_batch, control_type, records_in, unfolded


class ConsumerRecord(NamedTuple):
    """A record with the place it was read from."""

    topic: str
    partition: int
    offset: Offset
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    leader_epoch: LeaderEpoch


class RawBatch(NamedTuple):
    """A whole batch whose checksum is right, its records still folded, and whether the reader is to see them."""

    header: BatchHeader
    content: memoryview
    is_visible: bool


class DecodedBatch(NamedTuple):
    """What one batch gives the reader, perhaps nothing, and where the reader stands behind it."""

    records: list[ConsumerRecord]
    next_offset: Offset


class Chunk:
    """What one fetch brought for one partition: whole batches, and the transactions aborted among them."""

    __slots__ = ("_aborted", "_aborted_now", "_data", "_position", "next_offset", "size")

    def __init__(self, data: Buffer, aborted: Sequence[tuple[Offset, ProducerId]], *, read_committed: bool) -> None:
        self._data = memoryview(data)
        self._position = 0
        self._aborted = deque(sorted(aborted)) if read_committed else None  # first offset, producer
        self._aborted_now: set[ProducerId] = set()
        self.size = len(self._data)
        self.next_offset = NO_OFFSET
        """The offset behind the last whole batch; -1 where there is none."""
        for _, header in headers(self._data):
            self.next_offset = header.next_offset

    def next_batch(self, partition: TopicPartition, from_offset: Offset) -> DecodedBatch | None:
        """Decode the next batch that reaches beyond `from_offset`; None at the end, CorruptRecords if it is broken."""
        position = self._position
        raw = self.next_raw(partition, from_offset)
        if raw is None:
            return None
        header = raw.header
        if not raw.is_visible:
            return DecodedBatch([], header.next_offset)
        try:
            records = records_in(unfolded(raw.content, header), header)
        except CorruptBatch as problem:
            self._position = position
            raise CorruptRecords(partition, header.base_offset, problem.message) from problem
        return DecodedBatch(_consumer_records(partition, header, records, from_offset), header.next_offset)

    def next_raw(self, partition: TopicPartition, from_offset: Offset) -> RawBatch | None:
        """Return the next batch that reaches beyond `from_offset`, with its records as they are."""
        while len(self._data) - self._position >= HEADER_BYTES:
            header = read_header(self._data, self._position)
            if header.size > len(self._data) - self._position:
                return None
            batch = self._data[self._position : self._position + header.size]
            if header.next_offset > from_offset or header.size < HEADER_BYTES:
                try:
                    check_batch(batch)
                    is_visible = self._is_visible(header, batch)
                except CorruptBatch as problem:
                    raise CorruptRecords(partition, header.base_offset, problem.message) from problem
                self._position += header.size
                return RawBatch(header, batch, is_visible)
            self._position += header.size
        return None

    def _is_visible(self, header: BatchHeader, batch: memoryview) -> bool:
        """Return whether the reader sees this batch; keeps track of the transactions that are aborted at this place."""
        if self._aborted is None:
            return not header.is_control
        while self._aborted and self._aborted[0][0] <= header.last_offset:
            self._aborted_now.add(self._aborted.popleft()[1])
        if header.is_control:
            records = records_in(unfolded(batch, header), header)
            if records and control_type(records[0]) is ControlType.ABORT:
                self._aborted_now.discard(header.producer_id)
            return False
        return not (header.is_transactional and header.producer_id in self._aborted_now)


class AssignedPartition:
    """A partition that is read: where the reader is, and what was fetched ahead of it."""

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.position: Offset | None = None
        """The next offset for the reader; None until it is looked up."""
        self.fetch_offset = NO_OFFSET
        self.until_offset: Offset | None = None
        """Where the reader will stop; what lies behind is not fetched."""
        self.generation = 0
        """Grows with each jump: an answer to a fetch from before it no longer counts."""
        self.paused = False
        self.chunks: deque[Chunk] = deque()
        self.buffered_bytes = 0
        self.high_watermark = NO_OFFSET
        self.problem: Exception | None = None
        self.attempts = 0
        self.failing_since: float | None = None
        """When the first of the attempts failed that have failed since the last answer."""
        self.last_problem: KafkaError | None = None
        """Why the last of them failed."""
        self.not_before = 0.0
        self.resolving = False
        self._fetching: int | None = None  # the generation that a fetch is under way for

    @property
    def is_being_fetched(self) -> bool:
        """Return whether an answer is due that still counts."""
        return self._fetching == self.generation

    @property
    def is_fetched(self) -> bool:
        """Return whether all is here that the reader will want."""
        return self.until_offset is not None and self.fetch_offset >= self.until_offset

    def begin_fetch(self) -> int:
        """Note that a fetch is under way, and give the generation to which its answer will belong."""
        self._fetching = self.generation
        return self.generation

    def end_fetch(self, generation: int) -> None:
        if self._fetching == generation:
            self._fetching = None

    def jump(self, offset: Offset | None) -> None:
        """Go to an offset, or with None to wherever the reset policy says; forget what was fetched ahead."""
        self.generation += 1
        self.position = offset
        self.fetch_offset = NO_OFFSET if offset is None else offset
        self.chunks.clear()
        self.buffered_bytes = 0
        self.problem = None
        self.not_before = 0.0

    def add(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)
        self.buffered_bytes += chunk.size
        self.fetch_offset = chunk.next_offset

    def next_batch(self) -> DecodedBatch | None:
        """Decode the next batch; None when all that was fetched is used up."""
        assert self.position is not None
        while self.chunks:
            decoded = self.chunks[0].next_batch(self.partition, self.position)
            if decoded is not None:
                return decoded
            self.buffered_bytes -= self.chunks.popleft().size
        return None


def _consumer_records(
    partition: TopicPartition, header: BatchHeader, records: list[Record], from_offset: Offset
) -> list[ConsumerRecord]:
    """Add where they come from; a fetch from the middle of a batch brings records that were not asked for."""
    topic, index = partition
    epoch = header.leader_epoch
    if header.base_offset < from_offset:
        records = [record for record in records if record.offset >= from_offset]
    new = tuple.__new__  # half the time of the constructor, and this runs for every record
    return [
        new(ConsumerRecord, (topic, index, offset, timestamp, key, value, record_headers, epoch))
        for offset, timestamp, key, value, record_headers in records
    ]
