"""What compaction has to know about transactions: which batches were aborted, and when a marker is not needed any more.

Everything that is cleaned lies below the last stable offset, so every transaction in it is decided. Records of aborted
ones go at once. A marker stays for as long as any batch of its transaction does, be it without records: readers, and
a restart that replays the log, would take the transaction for open. Pure; batches are shown in their order.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from operator import attrgetter

from riverlog.log.producers.aborted_transactions import AbortedRange
from riverlog.model.ids import Offset, ProducerId
from riverlog.records.batch import BatchHeader
from riverlog.records.control import Marker

_last_offset = attrgetter("last_offset")


class CleanedTransactions:
    """The transactions of a log, on one way through it."""

    def __init__(self, aborted: Iterable[AbortedRange]) -> None:
        self._aborted: dict[ProducerId, list[AbortedRange]] = defaultdict(list)
        for each in sorted(set(aborted), key=_last_offset):
            self._aborted[each.producer_id].append(each)
        self._seen: set[AbortedRange] = set()
        self._committing: set[ProducerId] = set()
        """Producers with batches that the next marker commits."""

    def is_aborted(self, header: BatchHeader) -> bool:
        """Return whether a batch belongs to an aborted transaction."""
        return self._aborted_with(header) is not None

    def note(self, header: BatchHeader) -> None:
        """Note a batch that is no marker."""
        if header.is_transactional:
            aborted = self._aborted_with(header)
            if aborted is None:
                self._committing.add(header.producer_id)
            else:
                self._seen.add(aborted)

    def is_over(self, header: BatchHeader, marker: Marker) -> bool:
        """Note a marker; return whether it ends a transaction of which nothing else is left."""
        if not marker.committed:
            return self._aborted_with(header) not in self._seen
        is_over = header.producer_id not in self._committing
        self._committing.discard(header.producer_id)
        return is_over

    def left_in(self, base_offset: Offset, next_offset: Offset) -> list[AbortedRange]:
        """List the aborted transactions of which something is left, and whose markers lie between two offsets."""
        return sorted((each for each in self._seen if base_offset <= each.last_offset < next_offset), key=_last_offset)

    def _aborted_with(self, header: BatchHeader) -> AbortedRange | None:
        """Find the aborted transaction that a batch, or the marker at its end, belongs to."""
        if not header.is_transactional:
            return None
        mine = self._aborted.get(header.producer_id, [])
        slot = bisect_left(mine, header.last_offset, key=_last_offset)
        return mine[slot] if slot < len(mine) and mine[slot].first_offset <= header.base_offset else None
