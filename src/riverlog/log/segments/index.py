"""The two sparse indexes of a segment, in memory and in Kafka's file formats.

    .index      relative offset i32 · position i32      the batch at `position` ends with that offset
    .timeindex  timestamp i64 · relative offset i32     no batch up to that offset has a later timestamp

Both only grow in all their columns. A file that does not is garbled: `decode` says so by giving None, and the
segment is scanned instead. Zeros at the end of a file are room that was reserved and never used.
"""

from array import array
from bisect import bisect_left, bisect_right
from operator import lt
from sys import byteorder
from typing import Final, NamedTuple, Self

from riverlog.model.ids import NO_TIMESTAMP, Offset

OFFSET_ENTRY_BYTES: Final = 8
TIME_ENTRY_BYTES: Final = 12
RELATIVE_OFFSET_MAX: Final = 2**31 - 1

_ZEROS: Final = bytes(65_536)

assert array("i").itemsize == 4
assert array("q").itemsize == 8


class OffsetEntry(NamedTuple):
    """The batch at `position` ends with `last_offset`."""

    last_offset: Offset
    position: int


class TimeEntry(NamedTuple):
    """No batch up to the one that ends with `last_offset` has a later timestamp; that one has this."""

    timestamp: int
    last_offset: Offset


class OffsetIndex:
    """Where batches lie, every so many bytes."""

    __slots__ = ("base_offset", "offsets", "positions")

    def __init__(self, base_offset: Offset) -> None:
        self.base_offset = base_offset
        self.offsets = array("i")
        self.positions = array("i")

    def __len__(self) -> int:
        return len(self.offsets)

    def __getitem__(self, slot: int) -> OffsetEntry:
        return OffsetEntry(Offset(self.base_offset + self.offsets[slot]), self.positions[slot])

    def append(self, last_offset: Offset, position: int) -> None:
        """Add an entry behind all others."""
        self.offsets.append(last_offset - self.base_offset)
        self.positions.append(position)

    def at_or_before(self, offset: Offset) -> OffsetEntry | None:
        """Find the last entry whose batch ends at or before this offset."""
        slot = bisect_right(self.offsets, offset - self.base_offset) - 1
        return self[slot] if slot >= 0 else None

    def boundary_at_or_before(self, position: int) -> int:
        """Find the last known batch boundary that is not behind this position."""
        slot = bisect_right(self.positions, position) - 1
        return self.positions[slot] if slot >= 0 else 0

    @property
    def end_offset(self) -> Offset:
        """Return the offset behind the last batch that has an entry."""
        return Offset(self.base_offset + self.offsets[-1] + 1) if self.offsets else self.base_offset

    def truncate(self, position: int) -> None:
        """Forget the batches from this position on."""
        self._keep(bisect_left(self.positions, position))

    def truncate_offsets(self, end_offset: Offset) -> None:
        """Forget the batches that do not end before this offset."""
        self._keep(bisect_left(self.offsets, end_offset - self.base_offset))

    def _keep(self, count: int) -> None:
        del self.offsets[count:]
        del self.positions[count:]

    def encode(self, first: int = 0) -> bytes:
        """Write the file's content, or its end from an entry on."""
        columns = array("i", bytes(OFFSET_ENTRY_BYTES * (len(self) - first)))
        columns[0::2] = self.offsets[first:]
        columns[1::2] = self.positions[first:]
        return _big_endian(columns).tobytes()

    @classmethod
    def decode(cls, base_offset: Offset, content: bytes) -> Self | None:
        """Read the file's content; None where it is garbled."""
        if len(content) % OFFSET_ENTRY_BYTES:
            return None
        columns = _big_endian(array("i", _used(content, OFFSET_ENTRY_BYTES)))
        index = cls(base_offset)
        index.offsets, index.positions = columns[0::2], columns[1::2]
        used = _entries_used(index.positions)
        del index.offsets[used:]
        del index.positions[used:]
        return index if _grows(index.offsets) and _grows(index.positions) else None


class TimeIndex:
    """How late the log was, every so many bytes."""

    __slots__ = ("base_offset", "offsets", "timestamps")

    def __init__(self, base_offset: Offset) -> None:
        self.base_offset = base_offset
        self.timestamps = array("q")
        self.offsets = array("i")

    def __len__(self) -> int:
        return len(self.timestamps)

    def __getitem__(self, slot: int) -> TimeEntry:
        return TimeEntry(self.timestamps[slot], Offset(self.base_offset + self.offsets[slot]))

    def append(self, timestamp: int, last_offset: Offset) -> None:
        """Add an entry behind all others, unless it says nothing new."""
        if timestamp > (self.timestamps[-1] if self.timestamps else NO_TIMESTAMP):
            self.timestamps.append(timestamp)
            self.offsets.append(last_offset - self.base_offset)

    def around(self, timestamp: int) -> tuple[TimeEntry | None, TimeEntry | None]:
        """Find the last entry before this timestamp and the first that is as late or later."""
        slot = bisect_left(self.timestamps, timestamp)
        return (self[slot - 1] if slot else None), (self[slot] if slot < len(self) else None)

    def truncate(self, end_offset: Offset) -> None:
        """Forget the batches from this offset on."""
        count = bisect_left(self.offsets, end_offset - self.base_offset)
        del self.timestamps[count:]
        del self.offsets[count:]

    def encode(self, first: int = 0) -> bytes:
        """Write the file's content, or its end from an entry on."""
        timestamps = array("i", _big_endian(self.timestamps[first:]).tobytes())
        columns = array("i", bytes(TIME_ENTRY_BYTES * (len(self) - first)))
        columns[0::3] = timestamps[0::2]
        columns[1::3] = timestamps[1::2]
        columns[2::3] = _big_endian(self.offsets[first:])
        return columns.tobytes()

    @classmethod
    def decode(cls, base_offset: Offset, content: bytes) -> Self | None:
        """Read the file's content; None where it is garbled."""
        if len(content) % TIME_ENTRY_BYTES:
            return None
        columns = array("i", _used(content, TIME_ENTRY_BYTES))
        timestamps = array("i", bytes(len(columns) // 3 * 8))
        timestamps[0::2] = columns[0::3]
        timestamps[1::2] = columns[1::3]
        index = cls(base_offset)
        index.timestamps = _big_endian(array("q", timestamps.tobytes()))
        index.offsets = _big_endian(columns[2::3])
        used = _entries_used(index.timestamps)
        del index.timestamps[used:]
        del index.offsets[used:]
        return index if _grows(index.timestamps) and _grows(index.offsets) else None


def _big_endian(column: "array[int]") -> "array[int]":
    """Turn a column round in place between the machine's byte order and the file's."""
    if byteorder == "little":
        column.byteswap()
    return column


def _used(content: bytes, entry_bytes: int) -> bytes:
    """Cut off what was reserved, but for the first entry: Kafka reserves 10 MB, and a killed one leaves them so."""
    end = len(content)
    while content.endswith(_ZEROS, 0, end):
        end -= len(_ZEROS)
    entries = -(-len(content[:end].rstrip(b"\0")) // entry_bytes)
    return content[: max(1, entries) * entry_bytes]


def _entries_used(column: "array[int]") -> int:
    """Count the entries before the zeros at the end; only the very first entry may be zero itself."""
    used = len(column)
    while used > 1 and column[used - 1] == 0:
        used -= 1
    return used


def _grows(column: "array[int]") -> bool:
    """Return whether each number is larger than the one before and none is negative."""
    return (not column or column[0] >= 0) and all(map(lt, column, column[1:]))
