"""The aborted transactions of a log: which records between which offsets are not for readers of committed ones.

Each segment has an index of those whose marker lies in it, in Kafka's `.txnindex` form, and no file where there are
none. An entry is written before its marker is, and is on the medium before that counts as flushed; what lies above the
recovery point is found again by a replay. A file that is garbled, or not what it was when it was last written down how
large it is (`aborted_checkpoint.py`), is `BadAbortedIndex`, and is made again from the log.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from struct import Struct
from typing import Final, NamedTuple, Self, overload

from riverlog.log.producers.aborted_checkpoint import IndexSum, encode_sums, sum_of
from riverlog.log.segments.log_folder import LogFolder, path_of
from riverlog.log.segments.open_files import HeldFile, read_file, write_file
from riverlog.model.disk_errors import may_pass
from riverlog.model.ids import Offset, ProducerId

TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
_ENTRY: Final = Struct(">hqqqq")
ENTRY_BYTES: Final = _ENTRY.size
_VERSION: Final = 0
_last_offset: Final = attrgetter("last_offset")


class AbortedRange(NamedTuple):
    """An aborted transaction: from its first batch to its marker, and below which offset all was decided with it."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    last_stable_offset: Offset


class BadAbortedIndex(ValueError):
    """The file of the segment that begins at this offset holds something else than it should."""

    def __init__(self, base_offset: Offset) -> None:
        super().__init__(f"the index of aborted transactions at offset {base_offset} is damaged")
        self.base_offset = base_offset


class AbortedIndex(Sequence[AbortedRange]):
    """The entries of one segment, in the order of their markers, as they stand in the file."""

    __slots__ = ("content",)

    def __init__(self, entries: Iterable[AbortedRange] = ()) -> None:
        self.content = bytearray()
        for entry in entries:
            self.content += encode(entry)

    @classmethod
    def decode(cls, content: bytes, base_offset: Offset) -> Self:
        """Read a file; BadAbortedIndex where it is garbled."""
        index = cls()
        index.content += content
        if len(content) % _ENTRY.size:
            raise BadAbortedIndex(base_offset)
        behind = base_offset
        for version, _, first_offset, last_offset, last_stable_offset in _ENTRY.iter_unpack(content):
            if version != _VERSION or not first_offset <= last_offset >= behind or last_stable_offset > last_offset + 1:
                raise BadAbortedIndex(base_offset)
            behind = last_offset + 1
        return index

    def __len__(self) -> int:
        return len(self.content) // _ENTRY.size

    @overload
    def __getitem__(self, slot: int) -> AbortedRange: ...

    @overload
    def __getitem__(self, slot: slice) -> list[AbortedRange]: ...

    def __getitem__(self, slot: int | slice) -> AbortedRange | list[AbortedRange]:
        if isinstance(slot, slice):
            return [self[each] for each in range(*slot.indices(len(self)))]
        if not 0 <= slot < len(self):
            raise IndexError(slot)
        return AbortedRange._make(_ENTRY.unpack_from(self.content, slot * _ENTRY.size)[1:])

    def from_offset(self, offset: Offset) -> int:
        """Find the first entry whose marker is not below this offset."""
        return bisect_left(self, offset, key=_last_offset)

    def keep(self, count: int) -> None:
        """Forget all but the first entries."""
        del self.content[count * _ENTRY.size :]


def encode(entry: AbortedRange) -> bytes:
    """Write one entry."""
    return _ENTRY.pack(_VERSION, *entry)


def decode(content: bytes) -> AbortedRange | None:
    """Read one entry; None where it is too short, or of a form that is not known."""
    if len(content) != _ENTRY.size:
        return None
    version, *fields = _ENTRY.unpack(content)
    return AbortedRange._make(fields) if version == _VERSION else None


class AbortedTransactions:
    """The indexes of all segments of a log; each is read when it is first needed."""

    def __init__(
        self, folder: LogFolder, bases: Iterable[Offset] = (), sums: Mapping[Offset, IndexSum] | None = None
    ) -> None:
        self.folder = folder
        self._sums = dict(sums or {})
        """How large the indexes were when that was written down last; each still begins with that."""
        self.has_new_sums = False
        """Some have changed since."""
        self._bases = sorted({*bases, *self._sums})
        """The segments that have an index, empty or not."""
        self._indexes: dict[Offset, AbortedIndex] = {}
        self._unsynced: set[Offset] = set()
        self._unwritten: set[Offset] = set()
        """Indexes whose files say more than is true: they are written anew before they are synced."""

    def __bool__(self) -> bool:
        return bool(self._bases)

    def of(self, base_offset: Offset) -> AbortedIndex:
        """Return a segment's index, an empty one where it has none; BadAbortedIndex where its file is damaged."""
        index = self._indexes.get(base_offset)
        if index is None:
            content = (
                read_file(self.folder.disk, self._path(base_offset), self.folder.files)
                if self._has(base_offset)
                else None
            )
            index = AbortedIndex.decode(content or b"", base_offset)
            known = self._sums.get(base_offset)
            if known is not None and not known.begins(index.content):
                raise BadAbortedIndex(base_offset)
            if content is not None:
                self._indexes[base_offset] = index
        return index

    def find(self, segment: Offset, offset: Offset, upto: Offset) -> list[AbortedRange]:
        """Find those with records between two offsets, from the segment of the first on; sorted by first offset."""
        found: list[AbortedRange] = []
        for base_offset in self._bases[bisect_left(self._bases, segment) :]:
            index = self.of(base_offset)
            for slot in range(index.from_offset(offset), len(index)):
                entry = index[slot]
                if entry.first_offset < upto:
                    found.append(entry)
                if entry.last_stable_offset >= upto:  # whatever was aborted later began later, too
                    return sorted(found, key=attrgetter("first_offset"))
        return sorted(found, key=attrgetter("first_offset"))

    def encode_sums(self) -> bytes:
        """Write down how large the indexes are, to be replaced on the medium with the next snapshot of producers."""
        self._sums |= {base_offset: sum_of(index.content) for base_offset, index in self._indexes.items()}
        self.has_new_sums = False
        return encode_sums(self._sums)

    def append(self, base_offset: Offset, entries: Iterable[AbortedRange]) -> None:
        """Add entries to a segment's index and write them behind the others; on OSError nothing has changed."""
        index = self.of(base_offset)
        content = b"".join(map(encode, entries))
        file = HeldFile(self.folder.disk.open(self._path(base_offset), create=True))
        self._unsynced.add(base_offset)
        file.write(len(index.content), (content,))
        index.content += content
        self._keep(base_offset, index)

    def truncate(self, base_offset: Offset, offset: Offset) -> None:
        """Forget the entries of a segment whose markers are not below this offset.

        A file that cannot be written now is written before the next sync.
        """
        index = self.of(base_offset)
        if (count := index.from_offset(offset)) < len(index):
            self._keep(base_offset, AbortedIndex(index[:count]))
            self._unwritten.add(base_offset)
            try:
                self._write_unwritten()
            except OSError as error:
                if not may_pass(error):
                    raise

    def replace(self, base_offset: Offset, entries: Iterable[AbortedRange]) -> None:
        """Write a segment's index anew."""
        index = AbortedIndex(entries)
        if index or self._has(base_offset):
            self._unsynced.add(base_offset)
            write_file(self.folder.disk, self._path(base_offset), bytes(index.content))
            self._keep(base_offset, index)

    def take(self, base_offset: Offset, content: bytes) -> None:
        """Use the content of a segment's index that lies under another name."""
        self._keep(base_offset, AbortedIndex.decode(content, base_offset))

    def forget(self, bases: Iterable[Offset]) -> None:
        """Forget the indexes of segments that are gone; their files are the caller's."""
        for base_offset in bases:
            self._unsynced.discard(base_offset)
            self._unwritten.discard(base_offset)
            self._indexes.pop(base_offset, None)
            self.has_new_sums |= self._sums.pop(base_offset, None) is not None
            if self._has(base_offset):
                self._bases.remove(base_offset)

    def distrust(self, bases: Iterable[Offset]) -> None:
        """Sync the indexes of these segments again: their writer was killed, perhaps before that."""
        self._unsynced.update(filter(self._has, bases))

    def take_unsynced(self) -> list[HeldFile]:
        """Return the files that were written since this was last asked, to be synced. On OSError nothing changes."""
        self._write_unwritten()
        files = [HeldFile(self.folder.disk.open(self._path(base_offset))) for base_offset in sorted(self._unsynced)]
        self._unsynced = set()
        return files

    def _write_unwritten(self) -> None:
        for base_offset in sorted(self._unwritten):
            self._unsynced.add(base_offset)
            write_file(self.folder.disk, self._path(base_offset), bytes(self._indexes[base_offset].content))
            self._unwritten.discard(base_offset)

    def _keep(self, base_offset: Offset, index: AbortedIndex) -> None:
        self._indexes[base_offset] = index
        self.has_new_sums = True
        if not self._has(base_offset):
            insort(self._bases, base_offset)

    def _has(self, base_offset: Offset) -> bool:
        slot = bisect_left(self._bases, base_offset)
        return slot < len(self._bases) and self._bases[slot] == base_offset

    def _path(self, base_offset: Offset) -> str:
        return path_of(self.folder.path, base_offset, TRANSACTION_INDEX_SUFFIX)
