"""When a segment is full. Pure: from what it holds, what comes next, the topic's settings and the time."""

from riverlog.log.segments.index import RELATIVE_OFFSET_MAX, TIME_ENTRY_BYTES
from riverlog.log.segments.segment import Segment
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import Offset
from riverlog.model.settings import TopicConfig


def is_full(
    active: Segment, config: TopicConfig, size: int, last_offset: Offset, last_timestamp: int, now_ms: int
) -> bool:
    """Return whether batches of this size, up to this offset and time, belong into a new segment."""
    if active.size + size > config.segment_bytes:
        return True
    if active.size == 0:
        return False
    begun, reached = active.first_timestamp, last_timestamp
    if begun < 0:
        begun, reached = active.created_ms, now_ms
    return (
        reached - begun > config.segment_ms - active.jitter % (config.segment_jitter_ms + 1)
        or (config.cleanup_compact and reached - begun > config.max_compaction_lag_ms)
        or last_offset - active.base_offset > RELATIVE_OFFSET_MAX
        or active.index_entries * TIME_ENTRY_BYTES >= config.segment_index_bytes
    )


def check_fits(config: TopicConfig, size: int) -> None:
    """Refuse what not even an empty segment could hold."""
    if size > config.segment_bytes:
        raise Refusal(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{size} bytes do not fit into a segment; segment.bytes allows {config.segment_bytes}",
        )
