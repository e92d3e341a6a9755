"""Which transactions of a partition are still undecided, so that its readers know how far all is decided.

A transaction begins with its first batch and is over once its marker is committed: until then the marker could be
lost, and what it decided be taken back. Pure. What every batch and marker asks takes the same time however many
transactions are open.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable

from riverlog.model.ids import Offset


class OpenTransactions:
    """The transactions that are not over, by the offset of their first batch."""

    __slots__ = ("_decided", "_marker_by_first", "first_unstable_offset")

    def __init__(self, first_offsets: Iterable[Offset] = ()) -> None:
        self._marker_by_first: OrderedDict[Offset, Offset | None] = OrderedDict.fromkeys(sorted(first_offsets))
        self._decided: deque[tuple[Offset, Offset]] = deque()
        """Marker and first batch of those whose marker is not committed, in the order of the markers."""
        self.first_unstable_offset: Offset | None = next(iter(self._marker_by_first), None)
        """Where the oldest transaction began that is not over."""

    def __len__(self) -> int:
        return len(self._marker_by_first)

    def begin(self, first_offset: Offset) -> None:
        """Note a transaction's first batch; it lies behind those of all others."""
        self._marker_by_first[first_offset] = None
        if self.first_unstable_offset is None:
            self.first_unstable_offset = first_offset

    def decide(self, first_offset: Offset, marker_offset: Offset) -> None:
        """Note a transaction's marker."""
        self._marker_by_first[first_offset] = marker_offset
        self._decided.append((marker_offset, first_offset))

    def undecided_from(self, next_offset: Offset) -> Offset:
        """Find where the oldest transaction began that has no marker yet; the next offset where all have theirs."""
        for first_offset, marker_offset in self._marker_by_first.items():
            if marker_offset is None:
                return first_offset
        return next_offset

    def committed(self, high_watermark: Offset) -> None:
        """Note that all below an offset is committed."""
        decided = self._decided
        if not decided or decided[0][0] >= high_watermark:
            return
        while decided and decided[0][0] < high_watermark:
            _, first_offset = decided.popleft()
            del self._marker_by_first[first_offset]
        self.first_unstable_offset = next(iter(self._marker_by_first), None)

    def truncate(self, end_offset: Offset) -> None:
        """Forget what lies from this offset on: transactions that began there, and markers of others."""
        while self._decided and self._decided[-1][0] >= end_offset:
            _, first_offset = self._decided.pop()
            self._marker_by_first[first_offset] = None
        while self._marker_by_first and next(reversed(self._marker_by_first)) >= end_offset:
            self._marker_by_first.popitem()
        self.first_unstable_offset = next(iter(self._marker_by_first), None)
