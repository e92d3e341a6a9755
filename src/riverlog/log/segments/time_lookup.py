"""Finding a time in a segment, by its time index, which is believed only as far as the batches that it names agree."""

from typing import TYPE_CHECKING

from riverlog.log.segments.index import TimeEntry
from riverlog.log.segments.scan import LOOKUP_CHUNK_BYTES
from riverlog.model.ids import Offset
from riverlog.records.batch import BatchHeader

if TYPE_CHECKING:
    from riverlog.log.segments.segment import Segment


def locate_time(segment: "Segment", timestamp: int, *, from_offset: Offset) -> tuple[int, BatchHeader] | None:
    """Find the first batch from an offset on with a record as late as this.

    In one scan of at most an index interval, unless a batch below the offset is as late: then from the offset on.
    """
    if timestamp > segment.last_timestamp:
        return None
    found = _scan_for_time(segment, timestamp)
    if found is None and not segment.rebuilt:
        segment.rebuild_indexes()
        if timestamp > segment.last_timestamp:
            return None
        found = _scan_for_time(segment, timestamp)
    if found is None:
        raise segment.integrity.damaged(0)
    if found[1].last_offset >= from_offset:
        return found
    start = segment.locate(from_offset)
    for position, header in segment.integrity.headers(start):
        if header.max_timestamp >= timestamp:
            segment.integrity.verify_all(start, position + header.size)
            return position, header
    return None


def _scan_for_time(segment: "Segment", timestamp: int) -> tuple[int, BatchHeader] | None:
    offset_index, time_index = segment.indexes()
    before, after = time_index.around(timestamp)
    if not (is_true(segment, before) and is_true(segment, after)):
        return None
    # The time index gets an entry whenever an offset entry is made and the time has advanced. So nothing up to
    # the offset entry before `after` is late enough, and without `after` nothing up to the last offset entry.
    last = Offset(after.last_offset - 1) if after else segment.next_offset
    entry = offset_index.at_or_before(last)
    start = entry.position if entry else 0
    for position, header in segment.integrity.headers(start, chunk_bytes=LOOKUP_CHUNK_BYTES):
        if entry is not None and position == start and header.last_offset != entry.last_offset:
            return None
        if header.max_timestamp >= timestamp:
            segment.integrity.verify_all(start, position + header.size)  # nor is one before it later than it says
            return position, header
    return None


def is_true(segment: "Segment", entry: TimeEntry | None) -> bool:
    """Return whether a time entry is what the batch says that it names."""
    if entry is None:
        return True
    if not segment.base_offset <= entry.last_offset < segment.next_offset:
        return False
    header = segment.header_at(segment.locate(entry.last_offset))
    return header.last_offset == entry.last_offset and header.max_timestamp == entry.timestamp
