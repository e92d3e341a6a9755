"""From a partition's folder to its segments: what an interrupted swap or deletion left is finished or removed, and what
lies above the recovery point is recovered, unless the folder is as a clean shutdown leaves it.

What is known afterwards about epochs and producers was learnt on the way, so that every batch is read at most once.
"""

from dataclasses import dataclass, field

from riverlog.log.checkpoint import PARTITION_FILE, BadCheckpoint, read_file
from riverlog.log.compaction.swap import finish_swaps
from riverlog.log.producers.aborted_checkpoint import ABORTED_FILE, UNKNOWN, IndexSum, decode_sums
from riverlog.log.recovery.recovery import FolderListing, list_folder, recover
from riverlog.log.recovery.replay import LogReplay
from riverlog.log.segments.log_folder import LogFolder
from riverlog.log.segments.open_files import OpenFiles
from riverlog.log.segments.quarantine import QUARANTINE_FILE, Quarantine
from riverlog.log.segments.segment import Segment
from riverlog.log.segments.segments import Segments
from riverlog.model.ids import Offset
from riverlog.model.ports import Disk


@dataclass(slots=True)
class OpenedFolder:
    """A folder's segments, none where it is new, and what was found out about them."""

    segments: Segments
    past: LogReplay
    clean: bool
    """The folder was as a clean shutdown leaves it."""
    unsynced: list[Segment] = field(default_factory=list)
    """Closed segments that were recovered."""
    bytes_cut: int = 0


def open_folder(
    disk: Disk,
    files: OpenFiles,
    folder: str,
    *,
    recovery_point: Offset,
    clean: bool,
    index_interval_bytes: int,
    dense: bool,
    now_ms: int,
) -> OpenedFolder:
    """Open the segments in this folder, which is created if it is missing."""
    disk.make_folder(folder)
    log_folder = LogFolder(disk, files, folder, index_interval_bytes, _read_quarantine(disk, folder))
    found = list_folder(disk, folder)
    if found.swaps or found.half_swaps:
        finish_swaps(log_folder, found, now_ms=now_ms)
        found = list_folder(disk, folder)
    for path in found.leftovers:
        disk.remove(path)
    segments = Segments(
        log_folder,
        found.segments,
        now_ms=now_ms,
        dense=dense,
        with_aborted=found.aborted,
        aborted_sums=_read_sums(disk, folder, found) if found.knows_aborted else {},
    )
    first_offset = segments.bases[0] if len(segments) else Offset(0)
    # A snapshot where the log begins is all that is left of what was deleted, whatever the recovery point says.
    snapshots_upto = max(first_offset, recovery_point)
    past = LogReplay(log_folder, first=first_offset, upto=snapshots_upto, now_ms=now_ms, snapshots=found.snapshots)
    if not len(segments):
        return OpenedFolder(segments, past, clean=False)
    if clean and _ends_cleanly(segments, recovery_point):
        past.catch_up(segments, segments.active)
        past.renew_aborted(segments)
        return OpenedFolder(segments, past, clean=True)
    first = segments.slot_of(recovery_point)
    recovered = recover(
        log_folder,
        segments.bases[first:],
        recovery_point=recovery_point,
        now_ms=now_ms,
        dense=dense,
        begin=lambda segment: past.catch_up(segments, segment),
        note=past.note,
    )
    segments.recovered(first, recovered.segments)
    past.renew_aborted(segments)
    unsynced = recovered.segments[:-1]
    for segment in unsynced:
        segments.close(segment)
    # What a process left behind that was killed may still be in the page cache only.
    for segment in recovered.segments:
        segment.unsynced |= segment.next_offset > recovery_point
    segments.aborted.distrust(segments.bases[first:])
    if recovery_point == 0 and disk.exists(f"{folder}/{PARTITION_FILE}"):
        segments.distrust(PARTITION_FILE)
    return OpenedFolder(segments, past, clean=False, unsynced=unsynced, bytes_cut=recovered.bytes_cut)


def _ends_cleanly(segments: Segments, recovery_point: Offset) -> bool:
    """Return whether the last segment is as a clean shutdown leaves it."""
    segments.reopen_last(upto=recovery_point)
    active = segments.active
    return not active.trailing_bytes and active.next_offset == recovery_point


def _read_quarantine(disk: Disk, folder: str) -> Quarantine:
    """Read what is known to be damaged; a file that is damaged itself says nothing, and all is found again."""
    path = f"{folder}/{QUARANTINE_FILE}"
    content = read_file(disk, path)
    try:
        return Quarantine() if content is None else Quarantine.decode(content, path)
    except BadCheckpoint:
        return Quarantine()


def _read_sums(disk: Disk, folder: str, found: FolderListing) -> dict[Offset, IndexSum]:
    """Read how large the indexes of aborted transactions are; if that is damaged, any of them may be wrong."""
    path = f"{folder}/{ABORTED_FILE}"
    try:
        return decode_sums(read_file(disk, path) or b"", path)
    except BadCheckpoint:
        return dict.fromkeys(found.segments, UNKNOWN)
