"""Reading a log: by offset, as ranges of files, and by time. Damage is skipped, or refused where it was asked for.

Looking for something may bring damage to light that lies beside it. So whoever is refused because of damage that was
not known before looks again.
"""

from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, TypeVar

from riverlog.log.producers.aborted_transactions import AbortedRange, BadAbortedIndex
from riverlog.log.recovery.replay import rebuild_aborted
from riverlog.log.segments.segments import Segments
from riverlog.log.times import FoundTime, find_latest, find_time
from riverlog.model.errors import Refusal
from riverlog.model.ids import NO_OFFSET, Offset
from riverlog.model.ports import FileRange
from riverlog.records.batch import BatchHeader

T = TypeVar("T")


class LogRead(NamedTuple):
    """Batches from the one that holds the wanted offset on; the first is whole, the last may be cut off."""

    records: FileRange | None
    next_offset: Offset = NO_OFFSET
    """The offset behind the last whole batch, where to read on."""

    @property
    def size(self) -> int:
        """Count the bytes."""
        return self.records.size if self.records is not None else 0

    def stops_short_of(self, upto: Offset) -> bool:
        """Return whether there is more below `upto` than was read: a segment ended, or no more was allowed."""
        return self.records is not None and self.next_offset < upto


NOTHING: Final = LogRead(None)


def read(segments: Segments, offset: Offset, *, bytes_max: int, upto: Offset, at_least_one: bool) -> LogRead:
    """Find the bytes from this offset on that lie below `upto`; nothing where there are none yet.

    The range begins with the batch that holds the offset and has at most `bytes_max` bytes; if the first batch is
    larger it is given whole, or not at all without `at_least_one`. Damaged bytes are a Refusal.
    """
    known = segments.quarantine.found
    try:
        return _read(segments, offset, bytes_max, upto, at_least_one)
    except Refusal:
        if segments.quarantine.found == known:
            raise
    return _find(segments, partial(_read, segments, offset, bytes_max, upto, at_least_one))


def read_time(segments: Segments, timestamp_ms: int, *, from_offset: Offset) -> FoundTime | None:
    """Find the first record that is as late as this or later; None where there is none.

    A Refusal where damage directly before the found one may hide an earlier one.
    """
    return _find(segments, partial(find_time, segments, timestamp_ms, from_offset=from_offset))


def read_latest(segments: Segments, *, from_offset: Offset) -> FoundTime | None:
    """Find the first record with the latest timestamp of all; a Refusal where damage may hide it."""
    return _find(segments, partial(find_latest, segments, from_offset=from_offset))


def bound_of(segments: Segments, found: LogRead) -> Offset:
    """Find an offset behind all that was read, of a last batch that is cut off too, and not far behind."""
    if found.records is None:
        return Offset(0)
    segment = segments[segments.slot_of(Offset(found.next_offset - 1))]
    offset_index = segment.indexes()[0]
    slot = bisect_left(offset_index.positions, found.records.position + found.records.size)
    return offset_index[slot].last_offset if slot < len(offset_index) else segment.next_offset


def find_aborted(segments: Segments, offset: Offset, upto: Offset) -> list[AbortedRange]:
    """Name the aborted transactions with records between two offsets, the earliest first."""
    segment = segments.bases[segments.slot_of(offset)]
    while True:
        try:
            return segments.aborted.find(segment, offset, upto)
        except BadAbortedIndex as damaged:
            rebuild_aborted(segments, damaged.base_offset)


def _find(segments: Segments, find: Callable[[], T]) -> T:
    while True:
        found = segments.quarantine.found
        try:
            return find()
        except Refusal:
            if segments.quarantine.found == found:
                raise


def _read(segments: Segments, offset: Offset, bytes_max: int, upto: Offset, at_least_one: bool) -> LogRead:
    slot = len(segments) - 1 if offset >= segments.active.base_offset else segments.slot_of(offset)
    segment = segments[slot]
    if segments.quarantine.entries:
        segments.quarantine.check(offset)
    position = segment.locate(offset)
    while position == segment.size:
        slot += 1
        if slot == len(segments):
            return NOTHING
        segment, position = segments[slot], 0
    end = segment.size if upto >= segment.next_offset else segment.locate(upto)
    alone: BatchHeader | None = None  # of the first batch, where it is all that is read
    if end - position > bytes_max:
        first = segment.header_at(position)
        first_end = position + first.size
        if first.size > bytes_max:
            if not at_least_one:
                return NOTHING
            end, alone = min(end, first_end), first if first_end <= end else None
        else:
            end = segment.boundary(position, position + bytes_max)
    if end <= position:
        return NOTHING
    end = segment.integrity.verify(position, end)
    next_offset = min(upto, segment.offset_at(position, end) if alone is None else alone.next_offset)
    return LogRead(FileRange(segment.file(), position, end - position), next_offset)
