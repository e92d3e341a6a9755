"""Which segments a partition may delete. Pure: from the segments, the topic's settings and the time.

Whole segments from the oldest on, for as long as one of the reasons holds: too old, too many bytes, or below
the log start offset. Nothing that readers have not been able to see is deleted, so a segment must lie wholly
below `upto`. The newest segment may be among them, unless it is empty; it is then rolled first.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from riverlog.model.ids import NO_TIMESTAMP, Offset
from riverlog.model.settings import TopicConfig


class SegmentFacts(NamedTuple):
    """What retention needs to know about a segment."""

    base_offset: Offset
    next_offset: Offset
    size: int
    last_timestamp: int
    """The latest of its records, or of its creation where it has none with a time."""
    first_timestamp: int = NO_TIMESTAMP


class DeletionReason(StrEnum):
    """Why a segment goes."""

    AGE = "older than retention.ms"
    SIZE = "beyond retention.bytes"
    START = "below the log start offset"


class DeletedSegment(NamedTuple):
    """A segment that retention let go."""

    base_offset: Offset
    next_offset: Offset
    size: int
    reason: DeletionReason
    damage: list[str]
    """What was damaged in it, and is gone now."""


def expired(
    segments: Sequence[SegmentFacts],
    config: TopicConfig,
    *,
    total_bytes: int,
    now_ms: int,
    log_start_offset: Offset,
    upto: Offset,
) -> list[DeletionReason]:
    """Find a reason for each segment to delete, from the oldest on, up to the first that stays."""
    reasons: list[DeletionReason] = []
    surplus = total_bytes - config.retention_bytes
    by_age = config.cleanup_delete and config.retention_ms >= 0
    by_size = config.cleanup_delete and config.retention_bytes >= 0
    for slot, segment in enumerate(segments, 1):
        if segment.next_offset > upto or (segment.size == 0 and slot == len(segments)):
            break
        if segment.next_offset <= log_start_offset:
            reasons.append(DeletionReason.START)
        elif by_age and now_ms - segment.last_timestamp > config.retention_ms:
            reasons.append(DeletionReason.AGE)
        elif by_size and surplus >= segment.size:
            reasons.append(DeletionReason.SIZE)
        else:
            break
        surplus -= segment.size
    return reasons
