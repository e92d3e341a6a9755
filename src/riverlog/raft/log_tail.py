"""What Raft must know of its log: where it begins and ends, how far it is flushed, its epochs and snapshots.

The records themselves are the driver's. A snapshot stands for every record below its end; the log may begin there.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from riverlog.model.epochs import EpochEnd, Epochs
from riverlog.model.ids import LeaderEpoch, Offset

EPOCH_ZERO: Final = LeaderEpoch(0)
"""The epoch of an empty log, and of a quorum that never had a leader."""
BEGINNING: Final = Offset(0)


class SnapshotId(NamedTuple):
    """A snapshot of all records below `end_offset`, the last of which was written in this epoch."""

    end_offset: Offset
    epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class Diverging:
    """A replica's log parts from ours: its last epoch ends here, or the one before it does."""

    end: EpochEnd


@dataclass(frozen=True, slots=True)
class Behind:
    """A replica needs records that the log has let go of: the snapshot stands for them."""

    snapshot: SnapshotId


class LogTail:
    """The end of a metadata log, kept beside the log itself."""

    __slots__ = ("end", "epochs", "flushed", "generation", "snapshots", "start")

    def __init__(
        self,
        *,
        start: Offset = BEGINNING,
        end: Offset = BEGINNING,
        epochs: Iterable[tuple[LeaderEpoch, Offset]] = (),
        snapshots: Iterable[tuple[SnapshotId, int]] = (),
    ) -> None:
        self.start = start
        self.end = end
        self.flushed = end
        """Everything below is on the medium: what a restart finds is."""
        self.generation = 0
        """Grows when the end is cut off: a flush that began before says nothing about what was written in its place."""
        self.epochs = Epochs(epochs)
        self.snapshots: dict[SnapshotId, int] = dict(sorted(snapshots))
        """The size in bytes of each snapshot, oldest first."""
        assert start <= end
        assert start == BEGINNING or self.snapshots, "a log that does not begin at 0 rests on a snapshot"

    @property
    def last_epoch(self) -> LeaderEpoch:
        """Return the epoch of the last record, be it in the log or in the snapshot it rests on."""
        if self.epochs.entries():
            return self.epochs.latest
        newest = self.newest_snapshot
        return EPOCH_ZERO if newest is None else newest.epoch

    @property
    def newest_snapshot(self) -> SnapshotId | None:
        return next(reversed(self.snapshots), None)

    @property
    def oldest_snapshot(self) -> SnapshotId | None:
        return next(iter(self.snapshots), None)

    def is_at_least(self, last_epoch: LeaderEpoch, end: Offset) -> bool:
        """Return whether a log that ends so holds all that this one may have committed."""
        return (last_epoch, end) >= (self.last_epoch, self.end)

    def append(self, epoch: LeaderEpoch, count: int) -> None:
        """Note records at the end."""
        assert count > 0
        assert epoch >= self.last_epoch, "epochs only grow along the log"
        self.epochs.begin(epoch, self.end)
        self.end = Offset(self.end + count)

    def synced(self, end: Offset, generation: int) -> None:
        """Note that everything below is on the medium, unless the end was cut off since the flush began."""
        if generation == self.generation:
            assert end <= self.end
            self.flushed = max(self.flushed, end)

    def truncate(self, end: Offset) -> None:
        """Forget records at the end."""
        assert self.start <= end <= self.end
        self.generation += 1
        self.end = end
        self.flushed = min(self.flushed, end)
        self.epochs.truncate_end(end)

    def restart(self, snapshot: SnapshotId, size: int) -> None:
        """Begin again, empty, behind a snapshot."""
        self.generation += 1
        self.snapshots = {snapshot: size}
        self.start = self.end = self.flushed = snapshot.end_offset
        self.epochs = Epochs()

    def rest_on(self, snapshot: SnapshotId, size: int) -> None:
        """Note a snapshot of committed records that was written here."""
        assert self.start <= snapshot.end_offset <= self.end
        self.snapshots[snapshot] = size

    def let_go(self, start: Offset) -> None:
        """Note that the log begins later now, and that older snapshots are gone."""
        assert any(snapshot.end_offset == start for snapshot in self.snapshots), "a snapshot stands for what goes"
        self.start = max(self.start, start)
        self.epochs.truncate_start(self.start)
        if self.epochs.latest >= 0 and self.start == self.end:
            self.epochs = Epochs()
        self.snapshots = {each: size for each, size in self.snapshots.items() if each.end_offset >= start}

    def compare(self, offset: Offset, last_epoch: LeaderEpoch) -> Diverging | Behind | None:
        """Compare a replica's log that ends so with this one; None where all of it is in this one, too."""
        newest, oldest = self.newest_snapshot, self.oldest_snapshot
        if offset == BEGINNING and newest is not None and newest.end_offset > BEGINNING:
            return Behind(newest)  # cheaper than all records
        if self.start == BEGINNING and offset == BEGINNING:
            return None
        if oldest is not None and newest is not None:
            rests_on_another = offset == self.start and last_epoch != self._epoch_below_start(oldest)
            if offset < self.start or rests_on_another or last_epoch < self._epoch_below_start(oldest):
                return Behind(newest)
        end = self.end_of(last_epoch)
        return None if end.epoch == last_epoch and end.end_offset >= offset else Diverging(end)

    def common_end(self, leaders: EpochEnd) -> Offset:
        """Find where this log parts from the leader's, which ends an epoch there."""
        own = self.end_of(leaders.epoch)
        end = min(own.end_offset, leaders.end_offset) if own.epoch == leaders.epoch else own.end_offset
        return max(self.start, min(end, self.end))

    def end_of(self, epoch: LeaderEpoch) -> EpochEnd:
        """Find the end of the largest epoch that is not above the given one, or of the log where none is known."""
        end = self.epochs.end_of(epoch, self.end)
        if end.end_offset < 0:
            return EpochEnd(self.last_epoch, self.end)
        oldest = self.oldest_snapshot
        if oldest is not None and end.end_offset == self.start == oldest.end_offset and end.epoch == epoch:
            return EpochEnd(oldest.epoch, oldest.end_offset)
        return end

    def _epoch_below_start(self, oldest: SnapshotId) -> LeaderEpoch:
        """Return the epoch of the record before the first one of the log."""
        return oldest.epoch if oldest.end_offset == self.start else EPOCH_ZERO
