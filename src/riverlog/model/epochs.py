"""Leader epochs of a partition: which leader's reign began at which offset (KIP-101, KIP-279).

Both columns grow. Replicas compare these histories to find where their logs part ways.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from riverlog.model.ids import NO_EPOCH, NO_OFFSET, LeaderEpoch, Offset


class EpochEnd(NamedTuple):
    """The offset behind the last record of an epoch; NO_EPOCH and NO_OFFSET where it is not known."""

    epoch: LeaderEpoch
    end_offset: Offset


UNKNOWN_END = EpochEnd(NO_EPOCH, NO_OFFSET)


class Epochs:
    """The history of one partition's leaders, oldest first."""

    __slots__ = ("_epochs", "_starts", "latest")

    def __init__(self, entries: Iterable[tuple[LeaderEpoch, Offset]] = ()) -> None:
        self.latest: LeaderEpoch = NO_EPOCH
        """The newest epoch, or NO_EPOCH. Every batch is compared with it."""
        self._epochs: list[LeaderEpoch] = []
        self._starts: list[Offset] = []
        for epoch, start_offset in entries:
            self.begin(epoch, start_offset)

    def entries(self) -> list[tuple[LeaderEpoch, Offset]]:
        """List each epoch with the offset at which it began."""
        return list(zip(self._epochs, self._starts, strict=True))

    def begin(self, epoch: LeaderEpoch, start_offset: Offset) -> bool:
        """Note that an epoch's first record has this offset; return whether that was news."""
        if epoch <= self.latest:
            return False
        if self._starts and start_offset <= self._starts[-1]:
            # The epochs that begin here or later wrote nothing that is still in the log.
            self.truncate_end(start_offset)
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self.latest = epoch
        return True

    def of(self, offset: Offset) -> LeaderEpoch:
        """Find the epoch in which the record at this offset was written."""
        slot = bisect_right(self._starts, offset) - 1
        return self._epochs[slot] if slot >= 0 else NO_EPOCH

    def end_of(self, epoch: LeaderEpoch, log_end_offset: Offset) -> EpochEnd:
        """Find the end of the largest epoch that is not above the given one."""
        if not self._epochs or epoch == NO_EPOCH or epoch > self.latest:
            return UNKNOWN_END
        if epoch == self.latest:
            return EpochEnd(epoch, log_end_offset)
        above = bisect_right(self._epochs, epoch)
        return EpochEnd(self._epochs[above - 1] if above else epoch, self._starts[above])

    def truncate_end(self, end_offset: Offset) -> bool:
        """Forget epochs that begin at or behind this offset; return whether there were any."""
        count = bisect_left(self._starts, end_offset)
        changed = count < len(self._starts)
        del self._epochs[count:]
        del self._starts[count:]
        self.latest = self._epochs[-1] if self._epochs else NO_EPOCH
        return changed

    def truncate_start(self, start_offset: Offset) -> bool:
        """Forget epochs that ended before this offset; return whether anything changed."""
        slot = bisect_right(self._starts, start_offset) - 1
        if slot < 0 or (slot == 0 and self._starts[0] == start_offset):
            return False
        del self._epochs[:slot]
        del self._starts[:slot]
        self._starts[0] = start_offset
        return True
