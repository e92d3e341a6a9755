"""The damage that is known in one partition's log: which offsets are not served, and why.

It is written to the file `quarantine` in the partition's folder, so that it is known after a restart too, and
forgotten when the segment is deleted. A file that is damaged itself is forgotten: what it named is found again.
Pure; the log reads and writes the file.
"""

from bisect import bisect_right
from collections.abc import Container
from typing import Final, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from riverlog.log.checkpoint import BadCheckpoint, decode_lines, encode_lines
from riverlog.log.limits import FLAWS_PER_LOG_MAX
from riverlog.log.segments.flaws import Flaw
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import Offset

QUARANTINE_FILE: Final = "quarantine"


class Quarantined(NamedTuple):
    """A flaw, and the segment that has it."""

    base_offset: Offset
    flaw: Flaw

    def __str__(self) -> str:
        return f"{self.base_offset:020d}.log is damaged at {self.flaw}"


class Quarantine:
    """Known flaws of one log, in the order of their offsets, which do not overlap."""

    __slots__ = ("entries", "found", "unreported", "unsaved")

    def __init__(self, entries: list[Quarantined] | None = None) -> None:
        self.entries = entries or []
        self.found = 0
        """How many flaws were added: a refused read looks again if this has grown."""
        self.unsaved = False
        self.unreported = list(self.entries)
        """What was not reported yet since the log was opened."""

    def add(self, base_offset: Offset, flaw: Flaw) -> None:
        """Note a flaw, joining it with those that it overlaps."""
        same = [known for known in self.entries if known.base_offset == base_offset]
        joined = [known for known in same if known.flaw.position < flaw.end and flaw.position < known.flaw.end]
        joined += [known for known in same if known.flaw == flaw and known not in joined]
        if same and not joined and len(self.entries) >= FLAWS_PER_LOG_MAX:
            joined = same[-1:]  # what lies between the two is not served either: the list is bounded
        flaws = [flaw, *(known.flaw for known in joined)]
        widest = Flaw(
            min(each.position for each in flaws),
            max(each.end for each in flaws),
            min(each.first_offset for each in flaws),
            max(each.next_offset for each in flaws),
            flaw.reason,
        )
        added = Quarantined(base_offset, widest)
        if added in self.entries:
            return
        self.entries = [known for known in self.entries if known not in joined]
        self.entries.insert(bisect_right(self.entries, widest.first_offset, key=_first_offset), added)
        self.found += 1
        self.unsaved = True
        self.unreported.append(added)

    def of(self, base_offset: Offset) -> list[Flaw]:
        """List the flaws of a segment, in the order of their positions."""
        return [known.flaw for known in self.entries if known.base_offset == base_offset]

    def at(self, offset: Offset) -> Quarantined | None:
        """Find the flaw in which an offset lies."""
        slot = bisect_right(self.entries, offset, key=_first_offset) - 1
        if slot >= 0 and offset < self.entries[slot].flaw.next_offset:
            return self.entries[slot]
        return None

    def check(self, offset: Offset) -> None:
        """Refuse an offset that cannot be read."""
        if self.entries and (known := self.at(offset)) is not None:
            raise refused(known)

    def ending_at(self, offset: Offset) -> Quarantined | None:
        """Find the flaw directly before an offset."""
        return self.at(Offset(offset - 1))

    def behind(self, log_start_offset: Offset) -> list[Quarantined]:
        """List the flaws with offsets from the log's start on."""
        return [known for known in self.entries if known.flaw.next_offset > log_start_offset]

    def segments_behind(self, log_start_offset: Offset) -> set[Offset]:
        """Name the segments that have such flaws."""
        return {known.base_offset for known in self.behind(log_start_offset)}

    def keep(self, base_offsets: Container[Offset]) -> None:
        """Forget the flaws of all segments but these."""
        self._replace([known for known in self.entries if known.base_offset in base_offsets])

    def truncate(self, offset: Offset) -> None:
        """Forget the flaws from an offset on."""
        self._replace([known for known in self.entries if known.flaw.first_offset < offset])

    def _replace(self, entries: list[Quarantined]) -> None:
        if len(entries) != len(self.entries):
            self.entries = entries
            self.unsaved = True

    def encode(self) -> bytes:
        """Write the file's content: a line per flaw, and a checksum over them."""
        content = encode_lines(
            f"{base_offset} {flaw.position} {flaw.end} {flaw.first_offset} {flaw.next_offset} {flaw.reason}"
            for base_offset, flaw in self.entries
        )
        return content + b"%08x\n" % crc32c(content)

    @classmethod
    def decode(cls, content: bytes, path: str) -> "Quarantine":
        """Read the file's content; BadCheckpoint where it is damaged."""
        content, given = content[:-9], content[-9:]
        if given != b"%08x\n" % crc32c(content):
            raise BadCheckpoint(f"{path} is damaged")
        entries = []
        for line in decode_lines(content, path):
            *numbers, reason = line.split(" ", 5)
            base_offset, position, end, first_offset, next_offset = map(int, numbers)
            flaw = Flaw(position, end, Offset(first_offset), Offset(next_offset), reason)
            entries.append(Quarantined(Offset(base_offset), flaw))
        return cls(entries)


def refused(known: Quarantined) -> Refusal:
    """Build a reader's refusal for bytes that are not what was written."""
    return Refusal(ErrorCode.CORRUPT_MESSAGE, f"{known}; it is not served")


def _first_offset(known: Quarantined) -> Offset:
    return known.flaw.first_offset
