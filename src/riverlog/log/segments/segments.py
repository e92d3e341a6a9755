"""The segments of one partition, oldest first; the last one is active, the others are closed.

A segment is learnt about when it is first needed, so that opening a partition costs the same however much it
holds. Deleting renames the files at once and removes them later; a range that is being sent stays valid.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Final

from riverlog.log.checkpoint import read_file
from riverlog.log.producers.aborted_checkpoint import IndexSum
from riverlog.log.producers.aborted_transactions import TRANSACTION_INDEX_SUFFIX, AbortedTransactions
from riverlog.log.retention import SegmentFacts
from riverlog.log.segments.flaws import Flaw
from riverlog.log.segments.log_folder import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    LogFolder,
    path_of,
)
from riverlog.log.segments.open_files import HeldFile, OpenFiles, write_file
from riverlog.log.segments.segment import Segment
from riverlog.model.ids import Offset

_BESIDE_A_LOG: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX, SNAPSHOT_SUFFIX)


class Segments:
    """Segments by base offset. Reading `active` before one was begun or recovered is a mistake."""

    def __init__(
        self,
        folder: LogFolder,
        bases: Sequence[Offset],
        *,
        now_ms: int,
        dense: bool = False,
        with_aborted: Iterable[Offset] = (),
        aborted_sums: Mapping[Offset, IndexSum] | None = None,
    ) -> None:
        self.folder = folder
        self.files = folder.files
        self.quarantine = folder.quarantine
        sums = {base_offset: known for base_offset, known in (aborted_sums or {}).items() if base_offset in bases}
        self.aborted = AbortedTransactions(folder, set(with_aborted).intersection(bases), sums)
        """What readers of committed records pass over."""
        self.dense = dense
        """Each segment ends where the next begins: compaction, as Kafka does it, may leave gaps."""
        self._opened_ms = now_ms
        self._segments: list[Segment | None] = [None] * len(bases)
        self._latest: list[int] | None = None
        self._deleted: list[tuple[int, str]] = []
        """Files that were renamed, and for how long they stay."""
        self._removals: deque[tuple[int, str]] = deque()
        """When they go, on the clock of `remove_deleted`."""
        self.bases = list(bases)
        self.active: Segment
        self.unsynced_files: list[HeldFile] = []
        """Index files that were written when their segments closed."""
        self.unsynced_names = False

    def __len__(self) -> int:
        return len(self.bases)

    def __getitem__(self, slot: int) -> Segment:
        """Return a segment, loading it on first use."""
        segment = self._segments[slot]
        if segment is None:
            upto = self.bases[slot + 1] if slot + 1 < len(self.bases) else None
            segment = Segment.load(self.folder, self.bases[slot], now_ms=self._opened_ms, upto=upto)
            self._segments[slot] = segment
            if upto is not None and segment.next_offset < upto and self.dense:
                self._note_missing(segment, upto)
        return segment

    def _note_missing(self, segment: Segment, upto: Offset) -> None:
        """Quarantine the offsets between a segment and the next one, unless they are known to be damaged."""
        if self.quarantine.at(segment.next_offset) is None:
            reason = "the file ends early, or the one behind it is missing"
            flaw = Flaw(segment.size, segment.size, segment.next_offset, upto, reason)
            self.quarantine.add(segment.base_offset, flaw)

    def note_lost(self, first_offset: Offset, upto: Offset, floor: Offset) -> Offset:
        """Quarantine what should lie between these offsets, where no segment does; return where the log begins.

        Where there is none at all, one will be begun at the floor.
        """
        quarantine, bases = self.quarantine, self.bases or [floor]
        quarantine.keep(bases)
        if first_offset < upto and quarantine.at(first_offset) is None:
            quarantine.add(bases[0], Flaw(0, 0, first_offset, upto, "no file holds what was before it"))
        begun = quarantine.entries[0].flaw.first_offset if quarantine.entries else bases[0]
        return min(begun, bases[0])

    def __iter__(self) -> Iterator[Segment]:
        return (self[slot] for slot in range(len(self)))

    @property
    def all_known(self) -> bool:
        """Return whether all segments have been learnt about."""
        return None not in self._segments

    def known(self) -> Iterator[Segment]:
        """Walk the segments that were needed since the log was opened."""
        return (segment for segment in self._segments if segment is not None)

    def release_files(self) -> None:
        """Release what cannot go to another process or a node's loop: open files."""
        while self.unsynced_files:
            self.unsynced_files.pop().sync()
        for segment in self.known():
            segment.release()

    def share(self, files: OpenFiles) -> None:
        """Count these segments' files among others from now on; none is open."""
        assert all(segment.held is None for segment in self.known())
        self.files = files
        self._move(replace(self.folder, files=files))

    def _move(self, folder: LogFolder) -> None:
        self.folder = self.aborted.folder = folder
        for segment in self.known():
            segment.folder = folder

    def slot_of(self, offset: Offset) -> int:
        """Find the segment that an offset belongs to; the first for offsets below all."""
        return max(0, bisect_right(self.bases, offset) - 1)

    def start_of(self, offset: Offset) -> Offset:
        """Find the offset with which the batch, or the damage, begins that holds this one."""
        if (known := self.quarantine.at(offset)) is not None:
            return known.flaw.first_offset
        segment = self[self.slot_of(offset)]
        position = segment.locate(offset)
        return min(offset, segment.header_at(position).base_offset) if position < segment.size else offset

    def slot_of_time(self, timestamp: int) -> int:
        """Find the first segment with a record as late as this; one behind the last where there is none."""
        if self._latest is None:
            self._latest = list(accumulate((self[slot].last_timestamp for slot in range(len(self) - 1)), max))
        slot = bisect_left(self._latest, timestamp)
        return slot if slot < len(self._latest) or self.active.last_timestamp >= timestamp else len(self)

    def set_index_interval(self, index_interval_bytes: int) -> None:
        """Change the bytes between two index entries, from the next one on."""
        self._move(replace(self.folder, index_interval_bytes=index_interval_bytes))

    # Growing

    def begin(self, base_offset: Offset, *, now_ms: int) -> None:
        """Close the active segment, if there is one, and begin another; on OSError the active one stays.

        Where the other one cannot be taken back it is used: indexes that were not written are built again.
        """
        begun = Segment.create(self.folder, base_offset, now_ms=now_ms)
        try:
            if self._segments:
                self.close(self.active)
        except OSError:
            # The active segment would go on past this offset: a file of that name would cut it off at the next start.
            if self._is_removed(begun.path(LOG_SUFFIX)):
                self.unsynced_names = True
                raise
        self.active = begun
        self.unsynced_names = True
        self.bases.append(base_offset)
        self._segments.append(begun)
        self._latest = None

    def _is_removed(self, path: str) -> bool:
        try:
            self.folder.disk.remove(path)
        except OSError:
            return False
        return True

    def close(self, segment: Segment) -> None:
        """Write a segment's index files; the next sync makes them durable."""
        segment.trim()
        self.until_synced(segment.index_files.write())
        segment.closed = True
        self.unsynced_names = True

    def until_synced(self, files: list[HeldFile]) -> None:
        """Keep files that were written for the next sync."""
        self.unsynced_files += self.files.until_synced(files)

    def write_beside(self, name: str, content: bytes) -> None:
        """Write a small file beside the segments; the next sync makes it durable."""
        self.until_synced([write_file(self.folder.disk, f"{self.folder.path}/{name}", content, self.files)])
        self.unsynced_names = True

    def distrust(self, name: str) -> None:
        """Sync a small file again: its writer was killed, perhaps before that."""
        self.until_synced([self.files.hold(self.folder.disk.open(f"{self.folder.path}/{name}"))])

    def recovered(self, first: int, segments: Sequence[Segment]) -> None:
        """Replace all segments from `first` on by the recovered ones."""
        kept = first + len(segments)
        for base_offset in self.bases[kept:]:
            self._delete_files(base_offset, delay_ms=0, suffixes=(LOG_SUFFIX, *_BESIDE_A_LOG))
        self.aborted.forget(self.bases[kept:])
        del self.bases[kept:]
        self._segments[first:] = segments
        self.reopen_last()

    def reopen_last(self, *, upto: Offset | None = None) -> None:
        """Reopen the last segment as the active one; with `upto`, all below that offset should be there."""
        if upto is not None and self._segments[-1] is None:
            self._segments[-1] = Segment.load(self.folder, self.bases[-1], now_ms=self._opened_ms, upto=upto)
        self.active = self[len(self) - 1]
        self.active.closed = False
        self._latest = None

    # Shrinking

    def delete(self, first: int, behind: int, *, delay_ms: int) -> None:
        """Delete segments; their files are renamed now and removed after a delay. On OSError the others stay."""
        for base_offset in self.bases[first:behind]:
            self._delete_files(base_offset, delay_ms=delay_ms, suffixes=(LOG_SUFFIX,))
            if (segment := self._segments[first]) is not None:
                segment.unsynced = False
                segment.release()
            del self.bases[first]
            del self._segments[first]
            self._latest = None
            self.aborted.forget((base_offset,))
            self._delete_files(base_offset, delay_ms=delay_ms, suffixes=_BESIDE_A_LOG)

    def take_over(self, first: int, behind: int, *, end_offset: Offset, delay_ms: int) -> None:
        """Serve a cleaned segment, still under its name of the swap, in place of those that it replaces."""
        base_offset = self.bases[first]
        cleaned = Segment.load(self.folder, base_offset, now_ms=self._opened_ms, ending=SWAP_SUFFIX)
        assert not cleaned.trailing_bytes
        assert cleaned.next_offset == end_offset
        # The log itself is replaced by the last rename; until then its name is that of a segment in use.
        suffixes = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
        self._delete_files(base_offset, delay_ms=delay_ms, suffixes=suffixes)
        self.aborted.forget((base_offset,))
        aborted = read_file(self.folder.disk, cleaned.path(TRANSACTION_INDEX_SUFFIX))
        if aborted is not None:
            self.aborted.take(base_offset, aborted)
        self.delete(first + 1, behind, delay_ms=delay_ms)
        if (replaced := self._segments[first]) is not None:
            replaced.release()
        self._segments[first] = cleaned

    def _delete_files(self, base_offset: Offset, *, delay_ms: int, suffixes: tuple[str, ...]) -> None:
        for suffix in suffixes:
            path = path_of(self.folder.path, base_offset, suffix)
            try:
                self.folder.disk.rename(path, path + DELETED_SUFFIX)
            except FileNotFoundError:
                continue
            self._deleted.append((delay_ms, path + DELETED_SUFFIX))
        self.unsynced_names = True

    def remove_deleted(self, uptime_ms: int) -> int:
        """Remove the files of deleted segments whose delay is over; return how many.

        A delay begins with the first call after the deletion, so a clock that is set does not change it.
        """
        self._removals += ((uptime_ms + delay_ms, path) for delay_ms, path in self._deleted)
        self._deleted.clear()
        count = 0
        while self._removals and self._removals[0][0] <= uptime_ms:
            due_ms, path = self._removals.popleft()
            try:
                self.folder.disk.remove(path)
            except FileNotFoundError:
                continue
            except OSError:
                self._removals.append((due_ms, path))  # it is tried again after the others
                raise
            count += 1
        return count


def facts_of(segment: Segment) -> SegmentFacts:
    """Describe a segment to those who decide about it."""
    last_timestamp = segment.last_timestamp if segment.last_timestamp >= 0 else segment.created_ms
    return SegmentFacts(segment.base_offset, segment.next_offset, segment.size, last_timestamp, segment.first_timestamp)
