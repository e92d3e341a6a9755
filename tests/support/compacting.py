"""Compaction of a log without a node: the steps of the driver, one behind the other."""

from riverlog.log.compaction.cleaning import clean, find_dirt, plan_cleaning
from riverlog.log.compaction.policy import DirtyRange
from riverlog.log.compaction.swap import begin_swap
from riverlog.log.log import Log
from riverlog.model.ids import Offset
from riverlog.model.ports import Disk

ROOMY = 1 << 30


def dirt_of(log: Log, *, cleaned_offset: int = 0, now_ms: int) -> DirtyRange:
    """Examine a log of which everything is committed, after flushing it."""
    log.flush()
    return find_dirt(log, cleaned_offset=Offset(cleaned_offset), upto=_stable(log), now_ms=now_ms)


def _stable(log: Log) -> Offset:
    log.producers.transactions.committed(log.log_end_offset)
    return log.last_stable_offset(log.log_end_offset)


def compact(disk: Disk, log: Log, *, cleaned_offset: int = 0, now_ms: int, keys_bytes_max: int = ROOMY) -> Offset:
    """Clean all that may be cleaned, whether it is due or not; say up to where the log is clean."""
    dirt = find_dirt(log, cleaned_offset=Offset(cleaned_offset), upto=_stable(log), now_ms=now_ms)
    if not log.sync_planner.closed_is_durable:
        log.flush()
    cleaning = plan_cleaning(log, dirt, now_ms=now_ms, keys_bytes_max=keys_bytes_max, bytes_per_second_max=float("inf"))
    clean_upto = dirt.first_dirty_offset
    for group in clean(disk, cleaning, lambda _seconds: None):
        if group.size is not None:
            swap = begin_swap(log, group.replaced)
            assert swap is not None
            swap.announce()
            swap.take_over()
            swap.confirm()
            swap.finish()
        clean_upto = group.clean_upto
    return clean_upto
