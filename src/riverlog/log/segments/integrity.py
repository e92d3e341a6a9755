"""Which bytes of a segment may be served: those that this process wrote, or whose checksums it has verified since.

Each range is verified once, when it is first asked for, and remembered. What is found to be damaged goes into the
log's quarantine, and from then on every walk goes round it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from riverlog.log.limits import UNVERIFIED_BYTES_PER_READ_MAX
from riverlog.log.segments.flaws import Flaw, examine
from riverlog.log.segments.quarantine import Quarantined, refused
from riverlog.log.segments.scan import SCAN_CHUNK_BYTES, scan_headers
from riverlog.log.segments.verified_ranges import VerifiedRanges
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.records.batch import BatchHeader

if TYPE_CHECKING:
    from riverlog.log.segments.segment import Segment


class Integrity:
    """What is known to be good and to be damaged in one segment."""

    __slots__ = ("_segment", "_verified", "trusted_from")

    def __init__(self, segment: "Segment") -> None:
        self._segment = segment
        self._verified = VerifiedRanges()
        self.trusted_from = 0
        """From here to the end all was appended or scanned by this process; below, ranges are remembered."""

    def truncate(self, position: int) -> None:
        """Forget what lies from this position on."""
        self._verified.truncate(position)
        self.trusted_from = min(self.trusted_from, position)

    def flaws(self) -> list[Flaw]:
        """List what is known to be damaged, in the order of positions."""
        quarantine = self._segment.quarantine
        return quarantine.of(self._segment.base_offset) if quarantine.entries else []

    def headers(
        self, position: int, *, end: int | None = None, chunk_bytes: int = SCAN_CHUNK_BYTES
    ) -> Iterator[tuple[int, BatchHeader]]:
        """Walk the headers of the batches from a position on, round what is known to be damaged."""
        file = self._segment.file()
        end = self._segment.size if end is None else end
        for flaw in self.flaws():
            if position < flaw.end:
                yield from scan_headers(file, position, min(flaw.position, end), chunk_bytes=chunk_bytes)
                position = flaw.end
        yield from scan_headers(file, position, end, chunk_bytes=chunk_bytes)

    def verify(self, position: int, end: int) -> int:
        """Verify what was not verified yet from the batch at `position` on; return how far the bytes are good.

        Stops before a damaged batch, and after a bounded number of bytes. A first batch that is damaged is a Refusal.
        """
        for flaw in self.flaws():
            if flaw.position <= position < flaw.end:
                raise refused(Quarantined(self._segment.base_offset, flaw))
            if position < flaw.position:
                end = min(end, flaw.position)
        if position >= self.trusted_from:
            return end
        good = self._verified.end_of(position)
        target = min(end, position + UNVERIFIED_BYTES_PER_READ_MAX, self.trusted_from)
        while good < target:
            checked = self._verify_from(good, target)
            if checked == good:
                break
            self._verified.add(good, checked)
            good = self._verified.end_of(checked)
        if good == position:
            self._note_flaws(position)
            raise self.damaged(position)
        return end if good >= self.trusted_from else min(good, end)

    def verify_all(self, position: int, end: int) -> None:
        """Verify all batches between these positions; a Refusal where one is damaged that was not known to be."""
        while position < end:
            behind = next((flaw.end for flaw in self.flaws() if flaw.position <= position < flaw.end), None)
            position = self.verify(position, end) if behind is None else behind

    def damaged(self, position: int) -> Refusal:
        """Build the refusal for bytes that are not what was written."""
        path = self._segment.file().path
        return Refusal(ErrorCode.CORRUPT_MESSAGE, f"{path} is damaged at position {position}; it is not served")

    def _verify_from(self, position: int, target: int) -> int:
        """Verify whole batches until the target is reached; return how far they are good.

        The walk begins before them: only a neighbour on either side shows that a batch is in its place.
        """
        good = position
        for found in self._examine(self._before(position)):
            if isinstance(found, Flaw):
                if found.end <= position:
                    continue
                break
            end = found[0] + found[1].size
            if end <= position:
                continue
            if found[0] != good:
                break
            good = end
            if good >= target:
                break
        return good

    def _before(self, position: int) -> int:
        """Find a batch before this position, unless there is none or damage lies between."""
        if position == 0:
            return 0
        start = self._segment.indexes()[0].boundary_at_or_before(position - 1)
        return max([start, *(flaw.end for flaw in self.flaws() if start < flaw.end <= position)])

    def _note_flaws(self, position: int) -> None:
        """Find out which offsets are lost at a position where no good batch begins."""
        segment = self._segment
        start = segment.indexes()[0].boundary_at_or_before(position - 1) if position else 0
        for found in self._examine(start):
            if not isinstance(found, Flaw):
                if found[0] > position:
                    return
            elif start and found.position == start:
                self._note_flaws(start)  # where its offsets begin is only known from the batch before it
                return
            else:
                segment.quarantine.add(segment.base_offset, found)
                segment.rebuilt = False  # its header may have misled an index

    def _examine(self, position: int) -> Iterator[tuple[int, BatchHeader] | Flaw]:
        """Examine the batches from a position on, up to the next flaw that is already known."""
        segment = self._segment
        end, limit = segment.size, segment.next_offset
        for flaw in self.flaws():
            if flaw.position > position:
                end, limit = flaw.position, flaw.first_offset
                break
        return examine(
            segment.file(),
            position,
            end,
            after=segment.base_offset,
            limit=limit,
            search_bytes_max=UNVERIFIED_BYTES_PER_READ_MAX,
        )
