"""The times of records: which are let in, and finding records by them across the segments of a log.

Headers tell most of it: the latest time of a batch, and the first record's where no record is missing. A batch that
compaction has emptied still says how late it was, and has no record to give.
"""

from collections.abc import Iterator
from typing import NamedTuple

from riverlog.log.limits import LOOKED_INTO_BYTES_MAX
from riverlog.log.segments.quarantine import refused
from riverlog.log.segments.segment import Segment, first_timestamp
from riverlog.log.segments.segments import Segments
from riverlog.log.segments.time_lookup import locate_time
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_TIMESTAMP, TIMESTAMP_MAX, LeaderEpoch, Offset
from riverlog.model.limits import LOOKED_INTO_RECORDS_MAX
from riverlog.model.settings import TopicConfig
from riverlog.records.batch import DELETE_HORIZON, LOG_APPEND_TIME, BatchHeader
from riverlog.records.errors import BatchTooLarge
from riverlog.records.walk import find_record, unfold, walk


class FoundTime(NamedTuple):
    """A record found by its time."""

    offset: Offset
    timestamp_ms: int
    leader_epoch: LeaderEpoch


def check_times(header: BatchHeader, config: TopicConfig, *, now_ms: int) -> None:
    """Refuse records from too far in the past or the future."""
    if header.attributes & LOG_APPEND_TIME:
        raise Refusal(ErrorCode.INVALID_TIMESTAMP, "a producer may not mark its records with the log's own time")
    if header.max_timestamp - now_ms > config.message_timestamp_after_max_ms:
        raise Refusal(
            ErrorCode.INVALID_TIMESTAMP,
            f"a record's timestamp is {header.max_timestamp - now_ms} ms ahead; "
            f"message.timestamp.after.max.ms allows {config.message_timestamp_after_max_ms}",
        )
    if now_ms - header.first_timestamp > config.message_timestamp_before_max_ms and header.first_timestamp >= 0:
        raise Refusal(
            ErrorCode.INVALID_TIMESTAMP,
            f"a record's timestamp is {now_ms - header.first_timestamp} ms old; "
            f"message.timestamp.before.max.ms allows {config.message_timestamp_before_max_ms}",
        )


def find_time(segments: Segments, timestamp_ms: int, *, from_offset: Offset) -> FoundTime | None:
    """Find the first record from an offset on that is as late as this or later; None where there is none.

    Damage directly before the one that is found may hide an earlier one, and damage at the end any: a Refusal.
    """
    for slot in range(segments.slot_of_time(timestamp_ms), len(segments)):
        segment = segments[slot]
        for position, header in _batches_as_late(segment, timestamp_ms, from_offset):
            found = _first_record(segment, position, header, timestamp_ms, from_offset)
            if found is not None:
                if found.offset == header.base_offset:
                    _refuse_damage(segments, header.base_offset, from_offset)
                return found
    _refuse_damage(segments, segments.active.next_offset, from_offset)
    return None


def find_latest(segments: Segments, *, from_offset: Offset) -> FoundTime | None:
    """Find the first record with the latest timestamp of all."""
    latest = max((segment.last_timestamp for segment in segments), default=NO_TIMESTAMP)
    if latest < 0:
        return None
    found = find_time(segments, latest, from_offset=from_offset)
    if found is not None:
        for known in segments.quarantine.entries:
            if known.flaw.first_offset >= found.offset:
                raise refused(known)
        return found
    # The record that was as late is gone, or lies before the log's start: ask all that are there.
    latest = max(
        (_latest_in(segment, *found, from_offset) for segment in segments for found in segment.integrity.headers(0)),
        default=NO_TIMESTAMP,
    )
    return find_time(segments, latest, from_offset=from_offset) if latest >= 0 else None


def _latest_in(segment: Segment, position: int, header: BatchHeader, from_offset: Offset) -> int:
    """Find the latest time of a batch's records from an offset on; NO_TIMESTAMP where there is none."""
    if header.record_count == 0 or header.last_offset < from_offset:
        return NO_TIMESTAMP
    if header.base_offset >= from_offset:
        return header.max_timestamp
    segment.integrity.verify(position, position + header.size)
    data = _unfolded(segment, position, header)
    if data is None:
        return header.max_timestamp
    times = _times_in(data, header)
    return max((timestamp for offset, timestamp in times if offset >= from_offset), default=NO_TIMESTAMP)


def _refuse_damage(segments: Segments, end: Offset, from_offset: Offset) -> None:
    """Refuse an answer where what was directly before this offset cannot be read and may have been the right one."""
    known = segments.quarantine.ending_at(end)
    if known is not None and known.flaw.next_offset > from_offset:
        raise refused(known)


def _batches_as_late(segment: Segment, timestamp_ms: int, from_offset: Offset) -> Iterator[tuple[int, BatchHeader]]:
    first = locate_time(segment, timestamp_ms, from_offset=from_offset)
    if first is not None:
        yield first
        start = first[0] + first[1].size
        yield from (found for found in segment.integrity.headers(start) if found[1].max_timestamp >= timestamp_ms)


def _first_record(
    segment: Segment, position: int, header: BatchHeader, timestamp_ms: int, from_offset: Offset
) -> FoundTime | None:
    """Find the record within the batch, which is read and decoded for it where its header does not tell."""
    if header.record_count == 0:
        return None
    begun = first_timestamp(header)
    is_whole = header.record_count == header.last_offset_delta + 1 and not header.attributes & DELETE_HORIZON
    if is_whole and begun >= timestamp_ms and header.base_offset >= from_offset:
        return FoundTime(header.base_offset, begun, header.leader_epoch)
    segment.integrity.verify(position, position + header.size)
    data = _unfolded(segment, position, header)
    if data is None:
        return FoundTime(max(header.base_offset, from_offset), header.max_timestamp, header.leader_epoch)
    if header.attributes & LOG_APPEND_TIME:
        offsets = (offset for offset, _ in _times_in(data, header) if offset >= from_offset)
        offset = next(offsets, None)
        return None if offset is None else FoundTime(offset, header.max_timestamp, header.leader_epoch)
    found = find_record(data, header, timestamp_ms, offset_delta_min=from_offset - header.base_offset)
    return None if found is None else FoundTime(Offset(header.base_offset + found[0]), found[1], header.leader_epoch)


def _unfolded(segment: Segment, position: int, header: BatchHeader) -> bytes | None:
    """Return the records of a batch; None where it would take long to look into them.

    The first offset of all is the answer then: whoever reads from there on misses nothing.
    """
    if header.record_count > max(LOOKED_INTO_RECORDS_MAX, header.size):
        return None
    batch = segment.file().read(position, header.size)
    try:
        return unfold(batch, header, bytes_max=max(LOOKED_INTO_BYTES_MAX, header.size))
    except BatchTooLarge:
        return None


def _times_in(data: bytes, header: BatchHeader) -> Iterator[tuple[Offset, int]]:
    """Yield offset and time of each record."""
    is_stamped = bool(header.attributes & LOG_APPEND_TIME)
    for record in walk(data, header):
        timestamp = header.max_timestamp if is_stamped else header.first_timestamp + record.timestamp_delta
        if NO_TIMESTAMP <= timestamp <= TIMESTAMP_MAX:  # others are no times: their deltas lead out of 64 bits
            yield Offset(header.base_offset + record.offset_delta), timestamp
