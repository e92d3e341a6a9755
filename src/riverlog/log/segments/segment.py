"""One segment: a file of batches, its two sparse indexes, and what is known about it.

Indexes live in memory; they are written when the segment closes, read when it is loaded, and checked whenever
they are used: a wrong one is rebuilt from the batches, so it can cost time but never a wrong answer.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence, Sized
from typing import Self

from fastcrc.crc32 import iscsi as crc32c

from riverlog.log.segments.flaws import SEARCH_EVERYTHING, Flaw, TailContent, examine
from riverlog.log.segments.gathered_write import GatheredBatch, write_gathered
from riverlog.log.segments.index import RELATIVE_OFFSET_MAX, OffsetIndex, TimeEntry, TimeIndex
from riverlog.log.segments.index_files import IndexFiles
from riverlog.log.segments.integrity import Integrity
from riverlog.log.segments.log_folder import LOG_SUFFIX, LogFolder, path_of
from riverlog.log.segments.open_files import HeldFile
from riverlog.log.segments.scan import LOOKUP_CHUNK_BYTES, read_batch_header, scan_headers
from riverlog.log.segments.time_lookup import is_true
from riverlog.model.errors import Refusal
from riverlog.model.ids import NO_OFFSET, NO_TIMESTAMP, Offset
from riverlog.model.ports import Buffer, File
from riverlog.records.batch import DELETE_HORIZON, HEADER_BYTES, LOG_APPEND_TIME, BatchHeader


class Segment:
    """A run of batches from `base_offset` on; `next_offset` is the one behind its last record."""

    __slots__ = (
        "_bytes_since_entry", "_indexes", "_recent_from", "_recent_offsets", "_recent_positions", "base_offset",
        "closed", "created_ms", "ending", "first_timestamp", "folder", "held", "index_entries", "index_files",
        "integrity", "jitter", "last_timestamp", "last_timestamp_offset", "next_offset", "quarantine", "rebuilt",
        "size", "trailing_bytes", "uncut", "unsynced",
    )  # fmt: skip

    def __init__(self, folder: LogFolder, base_offset: Offset, *, now_ms: int, ending: str = "") -> None:
        self.folder = folder
        self.base_offset = base_offset
        self.ending = ending
        """What stands behind the usual names of its files while compaction puts it into the place of others."""
        self.quarantine = folder.quarantine
        self.created_ms = now_ms
        self.jitter = crc32c(self.path(LOG_SUFFIX).encode())
        """Some number that is another one for each segment, so that they do not all roll at once."""
        self.held: HeldFile | None = None
        self.unsynced = False
        self.uncut = False
        """A write has failed, and what it left may still be in the file."""
        self.closed = False
        """Nothing will be appended, and the index files hold all that the indexes know."""
        self.size = 0
        self.trailing_bytes = 0
        """Bytes behind the last whole batch, as found in the file when it was loaded."""
        self.next_offset = base_offset
        self.first_timestamp = NO_TIMESTAMP
        self.last_timestamp = NO_TIMESTAMP
        self.last_timestamp_offset = NO_OFFSET
        self._indexes: tuple[OffsetIndex, TimeIndex] | None = OffsetIndex(base_offset), TimeIndex(base_offset)
        self.index_entries = 0
        self.index_files = IndexFiles(self)
        self.rebuilt = False
        """The indexes were made from the batches, and nothing has been found since then that may have misled them."""
        self._bytes_since_entry = 0
        self.integrity = Integrity(self)
        """Which of its bytes may be served."""
        # The batches since the last index entry, so that the tail is found without reading.
        self._recent_from = base_offset
        self._recent_offsets: list[Offset] = []
        self._recent_positions: list[int] = []

    @classmethod
    def create(cls, folder: LogFolder, base_offset: Offset, *, now_ms: int, ending: str = "") -> Self:
        """Begin a new segment: an empty file, whose name is not durable until its folder is synced."""
        segment = cls(folder, base_offset, now_ms=now_ms, ending=ending)
        segment._hold(folder.disk.open(segment.path(LOG_SUFFIX), create=True))
        segment.unsynced = True
        return segment

    @classmethod
    def load(
        cls,
        folder: LogFolder,
        base_offset: Offset,
        *,
        now_ms: int,
        upto: Offset | None = None,
        beyond: TailContent = TailContent.NOTHING,
        ending: str = "",
    ) -> Self:
        """Learn about a segment from its files: its indexes, and the batches behind their last entry.

        With `upto`, only what lies wholly below that offset, all of which was synced: what is not there is damage. The
        rest, where something may lie `beyond`, is left as trailing bytes.
        """
        segment = cls(folder, base_offset, now_ms=now_ms, ending=ending)
        file_bytes = segment.file().size()
        indexes = segment.index_files.read(file_bytes, upto)
        if indexes is not None:
            segment.index_files.note(len(indexes[0]), len(indexes[1]))
            segment._resume(*indexes)
            segment._scan(file_bytes, upto)
        damaged = upto is not None and segment.next_offset < upto and segment.trailing_bytes > 0
        if indexes is None or damaged or not segment._knows_its_last_time():
            segment.index_files.note(0, 0)
            segment._restart()
            if upto is None:
                segment._scan(file_bytes)
            else:
                segment._scan_past_damage(file_bytes, upto, beyond)
            segment.rebuilt = True
        segment.closed = not segment.rebuilt
        segment.integrity.trusted_from = segment.size
        return segment

    def path(self, suffix: str) -> str:
        """Name one of the segment's files."""
        return path_of(self.folder.path, self.base_offset, suffix) + self.ending

    # Appending

    def append(self, gathered: Sequence[GatheredBatch]) -> None:
        """Write batches behind the last one; on OSError nothing has changed but bytes that nobody will read."""
        held = self.held or self.file()
        held.used = True
        self.unsynced = True
        if self.uncut:
            held.truncate(self.size)
        self.uncut = True
        write_gathered(held, self.size, gathered)
        self.uncut = False
        self._note(self.size, gathered)

    def append_all(self, batches: Buffer, headers: Sequence[tuple[int, BatchHeader]]) -> None:
        """Write several batches behind the last one, in one go."""
        held = self.file()
        start = self.size
        held.write(start, (batches,))
        self.unsynced = True
        for position, header in headers:
            self.note_header(start + position, header)

    def _note(self, position: int, batches: Iterable[tuple[Sized, Offset, Offset, int, int]]) -> None:
        """Note batches that lie in the file, behind all others: the one rule for index entries."""
        recent_offsets, recent_positions = self._recent_offsets, self._recent_positions
        bytes_since_entry, index_interval_bytes = self._bytes_since_entry, self.folder.index_interval_bytes
        for batch, base_offset, last_offset, first_timestamp, last_timestamp in batches:
            if last_timestamp > self.last_timestamp:
                self.last_timestamp = last_timestamp
                self.last_timestamp_offset = last_offset
            if bytes_since_entry > index_interval_bytes:
                offset_index, time_index = self.indexes()
                offset_index.append(last_offset, position)
                time_index.append(self.last_timestamp, self.last_timestamp_offset)
                self.index_entries += 1
                bytes_since_entry = 0
                self._recent_from = base_offset
                recent_offsets.clear()
                recent_positions.clear()
            elif position == 0:
                self.first_timestamp = first_timestamp
            recent_offsets.append(last_offset)
            recent_positions.append(position)
            bytes_since_entry += len(batch)
            position += len(batch)
            self.next_offset = Offset(last_offset + 1)
        self._bytes_since_entry = bytes_since_entry
        self.size = position

    # Finding

    def locate(self, offset: Offset) -> int:
        """Find the first batch that ends at or behind the offset; the end of the segment where there is none."""
        if self.quarantine.entries:
            for flaw in self.integrity.flaws():
                if flaw.first_offset <= offset < flaw.next_offset:
                    return flaw.position
        if offset >= self._recent_from:
            slot = bisect_left(self._recent_offsets, offset)
            return self._recent_positions[slot] if slot < len(self._recent_positions) else self.size
        position, found = self._scan_for(offset)
        if found:
            return position
        if self.rebuilt:
            raise self.integrity.damaged(position)
        self.rebuild_indexes()
        return self.locate(offset)

    def _scan_for(self, offset: Offset) -> tuple[int, bool]:
        """Scan from the nearest index entry; not found means that the entry is wrong or the batches break off."""
        entry = self.indexes()[0].at_or_before(offset)
        position = start = entry.position if entry else 0
        for position, header in self.integrity.headers(start, chunk_bytes=LOOKUP_CHUNK_BYTES):
            if entry is not None and position == start and header.last_offset != entry.last_offset:
                return position, False
            if header.last_offset >= offset:
                if header.base_offset > offset:
                    # A gap: compaction left it, or a header lies.
                    self.integrity.verify_all(start, position + header.size)
                return position, header.last_offset < self.next_offset
        return position, False

    def _knows_its_last_time(self) -> bool:
        """Check the last timestamp against its batch; where that is damaged there is no better answer."""
        if self.last_timestamp_offset == NO_OFFSET:
            return True
        try:
            return is_true(self, TimeEntry(self.last_timestamp, self.last_timestamp_offset))
        except Refusal:
            return True

    def header_at(self, position: int) -> BatchHeader:
        """Read the header of the batch at this position."""
        header = read_batch_header(self.file(), position, self.size)
        if header is None:
            raise self.integrity.damaged(position)
        return header

    def boundary(self, position: int, end: int) -> int:
        """Find a batch boundary at or before `end` and behind `position`; `end` itself where none is known."""
        if self._recent_positions and end >= self._recent_positions[0]:
            boundary = self._recent_positions[bisect_right(self._recent_positions, end) - 1]
        else:
            boundary = self.indexes()[0].boundary_at_or_before(end)
        return boundary if boundary > position else end

    def offset_at(self, position: int, end: int) -> Offset:
        """Find the offset with which the batch at `end` begins; within a batch, that behind the one at `position`."""
        if end >= self.size:
            return self.next_offset
        header = read_batch_header(self.file(), end, self.size)
        if header is not None:
            try:
                self.integrity.verify(end, end + HEADER_BYTES)
                return header.base_offset
            except Refusal:
                pass  # no batch begins here, or a damaged one
        for flaw in self.integrity.flaws():
            if flaw.position == end:
                return flaw.first_offset
        return self.header_at(position).next_offset

    # Files

    def file(self) -> HeldFile:
        """Return the segment's file, opening it if need be."""
        if self.held is None:
            return self._hold(self.folder.disk.open(self.path(LOG_SUFFIX)))
        self.held.used = True
        return self.held

    def _hold(self, file: File) -> HeldFile:
        held = self.held = self.folder.files.hold(file)
        self.folder.files.opened(self)
        return held

    def release(self) -> None:
        """Drop the file, and the indexes where they can be read again."""
        self.held = None
        self.folder.files.closed(self)
        if self.closed:
            self._indexes = None

    def trim(self) -> None:
        """Cut off what a failed write may have left behind the last batch; the next sync makes it durable.

        What is damaged stays as it is.
        """
        file = self.file()
        if file.size() > self.size and not any(flaw.position >= self.size for flaw in self.integrity.flaws()):
            file.truncate(self.size)
            self.unsynced = True

    def truncate(self, position: int) -> None:
        """Cut the file so that the batch at this position and all behind it are gone."""
        offset_index, time_index = self.indexes()
        self.index_files.remove()
        self.file().truncate(position)
        # Durable at once: bytes of the past that came back behind new ones would be taken for their successors.
        self.file().sync()
        self.unsynced = True
        self.integrity.truncate(position)
        offset_index.truncate(position)
        # An entry of the time index is only good if the offset entry beside it is.
        time_index.truncate(offset_index.end_offset)
        self._resume(offset_index, time_index)
        self._scan(position)

    # Indexes

    def indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        """Return both indexes, reading or rebuilding them if need be."""
        if self._indexes is None:
            self._indexes = self.index_files.read(self.size, None)
            if self._indexes is None:
                self._indexes = OffsetIndex(self.base_offset), TimeIndex(self.base_offset)
                self.rebuild_indexes()
        return self._indexes

    def rebuild_indexes(self) -> None:
        """Rebuild both indexes from the batches that are whole."""
        anew = Segment(self.folder, self.base_offset, now_ms=self.created_ms, ending=self.ending)
        anew.held = self.file()
        anew._scan_past_damage(self.size, self.next_offset)
        self.rebuilt = True
        self.closed = False
        self.index_files.note(0, 0)
        self._indexes = anew._indexes
        self.index_entries = anew.index_entries
        self.last_timestamp, self.last_timestamp_offset = anew.last_timestamp, anew.last_timestamp_offset
        self._bytes_since_entry = anew._bytes_since_entry
        self._recent_from = anew._recent_from
        self._recent_offsets, self._recent_positions = anew._recent_offsets, anew._recent_positions

    def _restart(self) -> None:
        """Forget the batches."""
        self._resume(OffsetIndex(self.base_offset), TimeIndex(self.base_offset))

    def _resume(self, offset_index: OffsetIndex, time_index: TimeIndex) -> None:
        """Resume from what the indexes say, up to the batch of the last offset entry, which comes next."""
        self._indexes = offset_index, time_index
        self.index_entries = len(offset_index)
        self._bytes_since_entry = 0
        self._recent_offsets.clear()
        self._recent_positions.clear()
        self.size = offset_index[-1].position if len(offset_index) else 0
        self.last_timestamp, self.last_timestamp_offset = (
            time_index[-1] if len(time_index) else (NO_TIMESTAMP, NO_OFFSET)
        )
        self._recent_from = self.next_offset = self.base_offset

    def _scan(self, end: int, upto: Offset | None = None) -> None:
        """Note all batches behind those already known, up to `end`, `upto`, or where they break off."""
        for position, header in self.integrity.headers(self.size, end=end):
            if not self.is_next(header) or (upto is not None and header.last_offset >= upto):
                break
            self.note_header(position, header)
        self.trailing_bytes = end - self.size
        if self.size and self.first_timestamp == NO_TIMESTAMP:
            for _, header in scan_headers(self.file(), 0, self.size, chunk_bytes=LOOKUP_CHUNK_BYTES):
                self.first_timestamp = first_timestamp(header)
                break

    def _scan_past_damage(self, end: int, limit: Offset, beyond: TailContent = TailContent.NOTHING) -> None:
        """Note all batches up to `limit` that are whole, and of the damage between them."""
        found = examine(
            self.file(),
            self.size,
            end,
            after=self.next_offset,
            limit=limit,
            beyond=beyond,
            search_bytes_max=SEARCH_EVERYTHING,
        )
        for each in found:
            if not isinstance(each, Flaw):
                self.note_header(*each)
                continue
            self.quarantine.add(self.base_offset, each)
            if each.end < end:
                self.size, self.next_offset = each.end, each.next_offset
        self.trailing_bytes = end - self.size

    def is_next(self, header: BatchHeader) -> bool:
        """Return whether a batch can follow those already known; compaction may have left a gap."""
        return header.base_offset >= self.next_offset and header.last_offset - self.base_offset <= RELATIVE_OFFSET_MAX

    def note_header(self, position: int, header: BatchHeader) -> None:
        """Note a batch found in the file."""
        if not self._recent_offsets:
            self._recent_from = header.base_offset
        times = first_timestamp(header), header.max_timestamp  # and of the batch only its length is needed
        self._note(position, ((range(header.size), header.base_offset, header.last_offset, *times),))


def first_timestamp(header: BatchHeader) -> int:
    """Return the timestamp of a batch's first record; that of its latest where another time stands in its place."""
    if header.attributes & (LOG_APPEND_TIME | DELETE_HORIZON):
        return header.max_timestamp
    return header.first_timestamp
