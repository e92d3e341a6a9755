"""Which part of a compacted log to clean, and which records stay. Pure: what is there, the settings, the time.

    log start        first dirty offset            first uncleanable offset            log end
        |  clean           |  dirty                         |  too new, or active           |

The dirty part is read for the newest offset of each key; then everything below its end is written anew without the
records that a newer one replaces. Offsets never change. A tombstone stays until the horizon that was set when it was
first cleaned, and can go only when everything that it deletes is gone: groups are cleaned oldest first.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from riverlog.log.retention import SegmentFacts
from riverlog.model.ids import Offset
from riverlog.model.settings import TopicConfig
from riverlog.records.batch import BatchHeader
from riverlog.records.walk import RecordSlice, delete_horizon

KEY_OVERHEAD_BYTES: Final = 160
"""What a key costs in memory beside its own bytes: two objects and its place in a dictionary that has just grown."""


class DirtyRange(NamedTuple):
    """How much of a log waits to be cleaned."""

    first_dirty_offset: Offset
    end_offset: Offset
    """The first uncleanable offset; always the start of a segment."""
    ratio: float
    overdue: bool
    """A record has waited for longer than `max.compaction.lag.ms`."""

    def is_due(self, config: TopicConfig) -> bool:
        """Return whether the log is worth cleaning now."""
        return self.first_dirty_offset < self.end_offset and (
            self.overdue or self.ratio > config.min_cleanable_dirty_ratio
        )


def examine(
    segments: Sequence[SegmentFacts],
    config: TopicConfig,
    *,
    cleaned_offset: Offset,
    log_start_offset: Offset,
    upto: Offset,
    now_ms: int,
) -> DirtyRange:
    """Judge the segments of a log, the last of which is active; nothing at or behind `upto` is cleaned."""
    *closed, active = segments
    first_dirty = max(cleaned_offset, log_start_offset)
    if first_dirty > active.next_offset:  # written down for a log that has been cut since
        first_dirty = log_start_offset
    end = closed[0].base_offset if closed else active.base_offset
    clean_bytes = dirty_bytes = 0
    overdue = False
    for segment in closed:
        is_dirty = segment.next_offset > first_dirty
        if segment.next_offset > upto:
            break
        if is_dirty and 0 < config.min_compaction_lag_ms > now_ms - segment.last_timestamp:
            break
        end = segment.next_offset
        if is_dirty:
            dirty_bytes += segment.size
            overdue = overdue or now_ms - segment.first_timestamp > config.max_compaction_lag_ms
        else:
            clean_bytes += segment.size
    ratio = dirty_bytes / (clean_bytes + dirty_bytes) if dirty_bytes else 0.0
    return DirtyRange(first_dirty, end, ratio, overdue)


def grouped(segments: Iterable[SegmentFacts], *, bytes_max: int, offsets_max: int) -> list[tuple[SegmentFacts, ...]]:
    """Put neighbours together that fit into one segment; a segment that is larger stays alone."""
    groups: list[list[SegmentFacts]] = []
    room = 0
    for segment in segments:
        if groups and segment.size <= room and segment.next_offset - groups[-1][0].base_offset <= offsets_max:
            groups[-1].append(segment)
        else:
            groups.append([segment])
            room = bytes_max
        room -= segment.size
    return [tuple(group) for group in groups]


class NewestOffsets:
    """The newest offset of each key in the dirty part, as far as the memory for it reaches."""

    __slots__ = ("_by_key", "_room", "end")

    def __init__(self, first_dirty_offset: Offset, *, bytes_max: int) -> None:
        self.end = first_dirty_offset
        """Every record below was looked at, now or in an earlier run."""
        self._by_key: dict[bytes, Offset] = {}
        self._room = bytes_max

    @property
    def is_full(self) -> bool:
        """Return whether no further batch should be noted; the first always may."""
        return self._room <= 0

    def note(self, header: BatchHeader, records: Iterable[RecordSlice]) -> None:
        """Note the next batch."""
        for record in records:
            if record.key is not None:
                if record.key not in self._by_key:
                    self._room -= KEY_OVERHEAD_BYTES + len(record.key)
                self._by_key[record.key] = Offset(header.base_offset + record.offset_delta)
        self.end = header.next_offset

    def pass_over(self, header: BatchHeader) -> None:
        """Note a batch that replaces nothing: a marker, or one of an aborted transaction."""
        self.end = header.next_offset

    def keeps(self, header: BatchHeader, record: RecordSlice, *, tombstones: bool) -> bool:
        """Decide about a record of a batch below `end`."""
        if record.key is None:
            return False  # from before the topic was compacted: there is no telling what it replaces
        if self._by_key.get(record.key, -1) > header.base_offset + record.offset_delta:
            return False
        return record.has_value or tombstones

    def horizon_passed(self, header: BatchHeader, now_ms: int) -> bool:
        """Return whether a batch's tombstones have been there for long enough."""
        horizon = delete_horizon(header)
        return horizon is not None and now_ms >= horizon
