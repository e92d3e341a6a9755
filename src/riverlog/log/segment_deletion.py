"""The deletion of segments that a log need not keep any longer, as `retention` judges."""

from riverlog.log.log import Log
from riverlog.log.retention import DeletedSegment, DeletionReason, expired
from riverlog.log.segments.segments import facts_of
from riverlog.model.ids import Offset


def find_expired(log: Log, now_ms: int, *, upto: Offset) -> list[DeletionReason]:
    """Find out why the oldest segments need not be kept; where that is all of them, begin another one."""
    if log.swapping:
        return []
    segments = log.segments
    ends = (*segments.bases[1:], log.log_end_offset)  # what is damaged at its end belongs to a segment, too
    reasons = expired(
        [facts_of(segment)._replace(next_offset=end) for segment, end in zip(segments, ends, strict=True)],
        log.config,
        total_bytes=log.size if log.config.retention_bytes >= 0 else 0,
        now_ms=now_ms,
        log_start_offset=log.log_start_offset,
        upto=upto,
    )
    if reasons and len(reasons) == len(segments):
        log.roll(now_ms)
    log.sync_planner.snapshots.keep_past(segments, len(reasons), now_ms)
    return reasons


def enforce_retention(log: Log, now_ms: int, *, upto: Offset, segments_max: int | None = None) -> list[DeletedSegment]:
    """Delete the segments that are expired.

    A crash may leave any of them, and so a gap, unless they go one by one with a flush before each.
    """
    reasons = find_expired(log, now_ms, upto=upto)[:segments_max]
    deleted = [
        DeletedSegment(
            segment.base_offset,
            segment.next_offset,
            segment.size,
            reason,
            [str(flaw) for flaw in segment.integrity.flaws()],
        )
        for segment, reason in zip(log.segments, reasons, strict=False)
    ]
    if deleted:
        _delete_below(log, len(deleted))
    return deleted


def _delete_below(log: Log, slot: int) -> None:
    segments = log.segments
    # First the offset, then the files: no read is sent to a segment that is going away.
    log.advance_log_start(max(log.log_start_offset, segments.bases[slot]))
    going = segments.bases[:slot]
    try:
        segments.delete(0, slot, delay_ms=log.config.file_delete_delay_ms)
    finally:
        gone = [base_offset for base_offset in going if base_offset not in segments.bases]
        log.sync_planner.forget(gone)
        log.quarantine.keep(segments.bases)
