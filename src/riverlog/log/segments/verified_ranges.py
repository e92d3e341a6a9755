"""Which bytes of a segment had their checksums verified since it was opened."""

from bisect import bisect_right

from riverlog.log.limits import VERIFIED_RANGES_PER_SEGMENT_MAX


class VerifiedRanges:
    """Separate ranges of positions, in order; neighbours that touch become one."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def end_of(self, position: int) -> int:
        """Find the end of what is verified from this position on; the position itself where nothing is."""
        slot = bisect_right(self._starts, position) - 1
        return max(position, self._ends[slot]) if slot >= 0 else position

    def add(self, start: int, end: int) -> None:
        """Note that all between these positions is verified."""
        first = bisect_right(self._starts, start)
        if first and self._ends[first - 1] >= start:
            first -= 1
        behind = bisect_right(self._starts, end)
        if first < behind:
            start = min(start, self._starts[first])
            end = max(end, self._ends[behind - 1])
        self._starts[first:behind] = [start]
        self._ends[first:behind] = [end]
        if len(self._starts) > VERIFIED_RANGES_PER_SEGMENT_MAX:
            self._forget_smallest()

    def truncate(self, position: int) -> None:
        """Forget what lies from this position on."""
        count = bisect_right(self._starts, position - 1)
        del self._starts[count:]
        del self._ends[count:]
        if count:
            self._ends[-1] = min(self._ends[-1], position)

    def _forget_smallest(self) -> None:
        slot = min(range(len(self._starts)), key=lambda at: self._ends[at] - self._starts[at])
        del self._starts[slot]
        del self._ends[slot]
