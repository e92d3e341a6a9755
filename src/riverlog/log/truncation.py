"""Cutting off the end of a log: the records go, and with them all that is remembered about them."""

from riverlog.log.checkpoint import replace_file
from riverlog.log.epoch_checkpoint import encode_epochs
from riverlog.log.log import Log
from riverlog.log.recovery.replay import EPOCHS_FILE, LogReplay
from riverlog.model.ids import Offset


def truncate(log: Log, offset: Offset, *, now_ms: int) -> None:
    """Cut off the records from this offset on, and the whole batch that holds it.

    The recovery point that is remembered elsewhere must be lowered first: what is missing below it is damage.
    """
    log.sync_planner.check_idle()
    assert not log.swapping, "a cleaned segment is being taken over: let it finish first"
    assert not log.has_gathered
    if offset >= log.log_end_offset:
        return
    segments = log.segments
    assert offset >= segments.bases[0], "the log does not reach back so far"
    end = segments.start_of(offset)
    _forget_epochs(log, end)
    log.sync_planner.forget([base_offset for base_offset in segments.bases if base_offset >= end])
    segments.delete(segments.slot_of(Offset(end - 1)) + 1, len(segments), delay_ms=0)
    segments.reopen_last()
    position = segments.active.locate(end)
    if position < segments.active.size:
        segments.active.truncate(position)
    segments.folder.disk.sync_folder(log.folder)
    _end_at(log, end, now_ms)


def _forget_epochs(log: Log, end: Offset) -> None:
    """Forget the epochs from here on, durably, before their records go: others may come in their place."""
    if log.epochs.truncate_end(end):
        replace_file(log.segments.folder.disk, f"{log.folder}/{EPOCHS_FILE}", encode_epochs(log.epochs))


def _end_at(log: Log, end: Offset, now_ms: int) -> None:
    """End the log here, and everything that is remembered about its records too."""
    log.log_end_offset = end
    log.quarantine.truncate(end)
    log.log_start_offset = min(log.log_start_offset, end)
    log.flushed_offset = min(log.flushed_offset, end)
    log.unchanged_end = None
    log.sync_planner.restart()
    segments = log.segments
    past = LogReplay(segments.folder, first=segments.bases[0], upto=end, now_ms=now_ms, epochs=log.epochs)
    past.catch_up(segments, segments.active)
    past.renew_aborted(segments)
    past.remove_snapshots(segments)
    log.sync_planner.unsynced_epochs |= past.has_new_epochs
    log.producers = past.producers
