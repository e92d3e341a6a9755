"""Taking over a cleaned segment in the place of those that it replaces, so that a crash leaves the old or the new.

    worker  1  `.cleaned` becomes `.swap`, and that is on the medium: from here on a restart finishes the swap
    loop    2  the segment is served under its `.swap` name; the files of the others are renamed to `.deleted`
    worker  3  the folder is synced, so that none of the others can come back
    loop    4  `.swap` becomes the segment's own name

Each step on the loop is a few renames; one that broke off may be done again and goes on where it was. Readers who hold
a range of an old file keep it. Retention of this log waits until the last step.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from riverlog.log.producers.aborted_transactions import TRANSACTION_INDEX_SUFFIX
from riverlog.log.recovery.recovery import FolderListing
from riverlog.log.retention import SegmentFacts
from riverlog.log.segments.log_folder import (
    CLEANED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    LogFolder,
    path_of,
)
from riverlog.log.segments.quarantine import Quarantine
from riverlog.log.segments.segment import Segment
from riverlog.log.segments.segments import facts_of
from riverlog.model.ids import Offset
from riverlog.model.ports import Disk

if TYPE_CHECKING:
    from riverlog.log.log import Log

_SUFFIXES: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX, LOG_SUFFIX)
"""The files of a cleaned segment; the log comes last, because its name decides. Most have no aborted transactions."""


def begin_swap(log: "Log", replaced: tuple[SegmentFacts, ...]) -> "Swap | None":
    """Begin to take a cleaned segment over in the place of these; None where they are not there any more."""
    segments = log.segments
    first = segments.slot_of(replaced[0].base_offset)
    behind = first + len(replaced)
    if log.swapping or not log.config.cleanup_compact or behind >= len(segments):
        return None
    if tuple(facts_of(segments[slot]) for slot in range(first, behind)) != replaced:
        return None
    if any(log.quarantine.of(facts.base_offset) for facts in replaced):
        return None
    return Swap(log, replaced)


class Swap:
    """One swap of one log, its steps to be called in their order. Made by `begin_swap`."""

    def __init__(self, log: "Log", replaced: tuple[SegmentFacts, ...]) -> None:
        self._log = log
        self._segments = log.segments
        self._disk = log.segments.folder.disk
        self._folder = log.folder
        self._replaced = replaced
        self._delay_ms = log.config.file_delete_delay_ms
        log.swapping = True
        log.segments.dense = False

    def announce(self) -> None:
        """Write down durably that the swap happens; may run in a worker thread."""
        # The log's name decides: it must not be there without that of the aborted index, which nothing would miss.
        self._sync_names()
        self._rename(CLEANED_SUFFIX, SWAP_SUFFIX)
        self._sync_names()

    def _sync_names(self) -> None:
        self._disk.sync_folder(self._folder)

    def take_over(self) -> None:
        """Serve the cleaned segment from now on."""
        first = self._segments.bases.index(self._replaced[0].base_offset)
        behind = bisect_right(self._segments.bases, self._replaced[-1].base_offset)
        self._segments.take_over(first, behind, end_offset=self._replaced[-1].next_offset, delay_ms=self._delay_ms)

    def confirm(self) -> None:
        """Sync the names, so that the others stay gone; may run in a worker thread."""
        self._disk.sync_folder(self._folder)

    def finish(self) -> None:
        """Rename the segment to its own name."""
        self._rename(SWAP_SUFFIX, "")
        self._segments[self._segments.bases.index(self._replaced[0].base_offset)].ending = ""
        self._segments.unsynced_names = True
        self._log.swapping = False

    def _rename(self, ending: str, new_ending: str) -> None:
        for suffix in _SUFFIXES:
            path = path_of(self._folder, self._replaced[0].base_offset, suffix)
            renamed = suffix == TRANSACTION_INDEX_SUFFIX or self._disk.exists(path + new_ending)  # or was never there
            if self._disk.exists(path + ending) or not renamed:
                self._disk.rename(path + ending, path + new_ending)


def remove_cleaned(disk: Disk, folder: str, base_offsets: Iterable[Offset]) -> None:
    """Remove what a cleaning wrote and no swap took over."""
    for base_offset in base_offsets:
        _remove(disk, folder, base_offset, tuple(suffix + CLEANED_SUFFIX for suffix in _SUFFIXES))


def finish_swaps(log_folder: LogFolder, found: FolderListing, *, now_ms: int) -> None:
    """Finish what a crash interrupted; indexes are built again when they are needed.

    The last rename may be lost again: then the next start repeats it. The log's first sync makes it durable.
    """
    disk, folder = log_folder.disk, log_folder.path
    unblemished = replace(log_folder, quarantine=Quarantine())  # what is known to be damaged was in those replaced
    for base_offset in found.half_swaps:
        path = path_of(folder, base_offset, TRANSACTION_INDEX_SUFFIX)
        disk.rename(path + SWAP_SUFFIX, path)
    for base_offset in found.swaps:
        cleaned = Segment.load(unblemished, base_offset, now_ms=now_ms, ending=SWAP_SUFFIX)
        cleaned.release()
        for other in found.segments:
            if base_offset < other < cleaned.next_offset:
                _remove(disk, folder, other, (*_SUFFIXES, SNAPSHOT_SUFFIX))
        _remove(disk, folder, base_offset, (INDEX_SUFFIX, TIME_INDEX_SUFFIX))
        aborted = path_of(folder, base_offset, TRANSACTION_INDEX_SUFFIX)
        if disk.exists(aborted + SWAP_SUFFIX):  # else it has its own name already
            disk.rename(aborted + SWAP_SUFFIX, aborted)
        disk.sync_folder(folder)
        path = path_of(folder, base_offset, LOG_SUFFIX)
        disk.rename(path + SWAP_SUFFIX, path)


def _remove(disk: Disk, folder: str, base_offset: Offset, suffixes: tuple[str, ...]) -> None:
    for suffix in suffixes:
        path = path_of(folder, base_offset, suffix)
        if disk.exists(path):
            disk.remove(path)
