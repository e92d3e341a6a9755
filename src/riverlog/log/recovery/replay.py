"""What a log knows beside its batches, replayed from small files and from the batches behind them.

Epochs and producers are written down now and then; the batches' headers and markers know both. So a file that is old
costs a scan from where it ends, one that is missing or damaged a longer scan, and neither changes an answer.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from riverlog.log.checkpoint import BadCheckpoint, read_file
from riverlog.log.epoch_checkpoint import decode_epochs
from riverlog.log.producers.aborted_transactions import BadAbortedIndex
from riverlog.log.producers.state import BadSnapshot, Producers
from riverlog.log.recovery.recovery import list_folder
from riverlog.log.segments.log_folder import SNAPSHOT_SUFFIX, LogFolder, path_of
from riverlog.log.segments.segment import Segment
from riverlog.log.segments.segments import Segments
from riverlog.model.epochs import Epochs
from riverlog.model.errors import Refusal
from riverlog.model.ids import Offset
from riverlog.model.ports import Disk
from riverlog.records.batch import BatchHeader
from riverlog.records.control import Marker, read_marker
from riverlog.records.errors import CorruptBatch

EPOCHS_FILE: Final = "leader-epoch-checkpoint"


class LogReplay:
    """Epochs and producers as the small files tell; `catch_up` and `note` bring them to the end of the log."""

    def __init__(
        self,
        folder: LogFolder,
        *,
        first: Offset,
        upto: Offset,
        now_ms: int,
        epochs: Epochs | None = None,
        snapshots: Sequence[Offset] | None = None,
    ) -> None:
        """Read the newest good snapshot between two offsets; list the snapshots and read the epochs unless given."""
        disk, path = folder.disk, folder.path
        self._folder = folder
        self._snapshots = list_folder(disk, path).snapshots if snapshots is None else snapshots
        self._first = first
        self._now_ms = now_ms
        known = _read_epochs(disk, path) if epochs is None else epochs
        self.epochs = Epochs() if known is None else known
        self._epochs_known = None if known is None else known.entries()
        self.producers, self._producers_from = Producers(), first
        for offset in reversed(self._snapshots):
            if first <= offset <= upto and (producers := _read_producers(disk, path, offset)) is not None:
                self.producers, self._producers_from = producers, offset
                break

    @property
    def has_new_epochs(self) -> bool:
        """Return whether the file of epochs differs from what is known."""
        return self._epochs_known != self.epochs.entries()

    def catch_up(self, segments: Segments, last: Segment) -> None:
        """Learn from the batches behind the files, up to the end of this segment."""
        start = self._first if self._epochs_known is None else self._producers_from
        for header, marker in headers_from(segments, start, last):
            self.note(header, marker)

    def note(self, header: BatchHeader, marker: Marker | None) -> None:
        """Learn from the next batch."""
        if header.leader_epoch > self.epochs.latest:
            self.epochs.begin(header.leader_epoch, header.base_offset)
        if header.producer_id >= 0 and header.base_offset >= self._producers_from:
            self.producers.remember(header, header.base_offset, self._now_ms, marker)

    def renew_aborted(self, segments: Segments) -> None:
        """Bring the indexes of aborted transactions in step with what was met on the way.

        What they say about the part that was not replayed is kept, unless it is damaged.
        """
        aborted, self.producers.aborted = self.producers.aborted, []
        for slot in range(segments.slot_of(self._producers_from), len(segments)):
            base_offset = segments.bases[slot]
            found = [each for each in aborted if segments.slot_of(each.last_offset) == slot]
            try:
                known = segments.aborted.of(base_offset)
                kept = [*known[: known.from_offset(self._producers_from)], *found]
                if kept != known[:]:
                    segments.aborted.replace(base_offset, kept)
                    segments.unsynced_names = True
            except BadAbortedIndex:
                rebuild_aborted(segments, base_offset)

    def remove_snapshots(self, segments: Segments) -> None:
        """Remove the snapshots that neither belong to a segment nor were needed."""
        for offset in self._snapshots:
            path = path_of(self._folder.path, offset, SNAPSHOT_SUFFIX)
            if offset != self._producers_from and offset not in segments.bases and self._folder.disk.exists(path):
                self._folder.disk.remove(path)  # unless recovery was first


def rebuild_aborted(segments: Segments, base_offset: Offset) -> None:
    """Rebuild a segment's index of aborted transactions from the newest snapshot before it, and its batches."""
    past = LogReplay(segments.folder, first=segments.bases[0], upto=base_offset, now_ms=0, epochs=Epochs())
    past.catch_up(segments, segments[segments.slot_of(base_offset)])
    segments.aborted.replace(base_offset, (each for each in past.producers.aborted if each.last_offset >= base_offset))
    segments.unsynced_names = True


def producers_before(segments: Segments, base_offset: Offset, *, now_ms: int) -> Producers:
    """Learn from the newest snapshot, and the batches behind it, what was known where a segment begins."""
    past = LogReplay(segments.folder, first=segments.bases[0], upto=base_offset, now_ms=now_ms, epochs=Epochs())
    past.catch_up(segments, segments[segments.slot_of(base_offset) - 1])
    return past.producers


def headers_from(segments: Segments, offset: Offset, last: Segment) -> Iterator[tuple[BatchHeader, Marker | None]]:
    """Walk all batches from this offset to the end of a segment, as far as they can be read: headers and markers."""
    if offset >= last.next_offset:
        return
    for slot in range(segments.slot_of(offset), segments.slot_of(last.base_offset) + 1):
        segment = last if segments.bases[slot] == last.base_offset else segments[slot]
        try:
            position = segment.locate(offset) if offset > segment.base_offset else 0
        except Refusal:
            # Damage is reported when it is read; what lies behind it is still worth knowing.
            continue
        for found, header in segment.integrity.headers(position):
            yield header, _marker_at(segment, found, header) if header.is_control else None


def _marker_at(segment: Segment, position: int, header: BatchHeader) -> Marker | None:
    """Read a marker; one that is damaged decides nothing, so that its transaction stays undecided."""
    try:
        return read_marker(segment.file().read(position, header.size))
    except CorruptBatch:
        return None


def _read_epochs(disk: Disk, folder: str) -> Epochs | None:
    """Read the file of epochs; None where it is missing or damaged."""
    path = f"{folder}/{EPOCHS_FILE}"
    content = read_file(disk, path)
    try:
        return None if content is None else decode_epochs(content, path)
    except BadCheckpoint:
        return None


def _read_producers(disk: Disk, folder: str, offset: Offset) -> Producers | None:
    """Read a snapshot of producers; None where it is missing or damaged."""
    content = read_file(disk, path_of(folder, offset, SNAPSHOT_SUFFIX))
    try:
        return Producers.decode(content or b"")
    except BadSnapshot:
        return None
