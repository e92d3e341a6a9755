"""The two index files of a segment: written when it closes, read when it is loaded, and believed after a check."""

from typing import TYPE_CHECKING, Final

from riverlog.log.segments.index import OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES, OffsetIndex, TimeIndex
from riverlog.log.segments.log_folder import INDEX_SUFFIX, TIME_INDEX_SUFFIX
from riverlog.log.segments.open_files import HeldFile, read_file, write_file
from riverlog.log.segments.scan import LOOKUP_CHUNK_BYTES, scan_headers
from riverlog.model.ids import Offset

if TYPE_CHECKING:
    from riverlog.log.segments.segment import Segment

_UNWRITTEN_ENTRIES_MAX: Final = 64


class IndexFiles:
    """What of a segment's indexes is in their files."""

    __slots__ = ("_segment", "_written")

    def __init__(self, segment: "Segment") -> None:
        self._segment = segment
        self._written = 0, 0  # entries of the offset and of the time index

    def note(self, offset_entries: int, time_entries: int) -> None:
        """Note how many entries are in the files."""
        self._written = offset_entries, time_entries

    def write(self) -> list[HeldFile]:
        """Write both files, with the last timestamp as the last entry; return what is to be synced.

        That is the time index: the latest time may stand in an entry that nothing else checks. An offset index that
        is cut short or garbled is noticed, and costs a scan.
        """
        segment = self._segment
        offset_index, time_index = segment.indexes()
        time_index.append(segment.last_timestamp, segment.last_timestamp_offset)
        write_file(segment.folder.disk, segment.path(INDEX_SUFFIX), offset_index.encode())
        return [
            write_file(segment.folder.disk, segment.path(TIME_INDEX_SUFFIX), time_index.encode(), segment.folder.files)
        ]

    def tails(self) -> list[tuple[str, int, bytes]]:
        """Return the entries that are not in the files yet: path, position, content; none while they are few.

        With them a recovery finds its recovery point without scanning the segment from its start.
        """
        segment = self._segment
        if segment.closed or segment.index_entries - self._written[0] < _UNWRITTEN_ENTRIES_MAX:
            return []
        offset_index, time_index = segment.indexes()
        offsets, times = self._written
        self._written = len(offset_index), len(time_index)
        return [
            (segment.path(INDEX_SUFFIX), offsets * OFFSET_ENTRY_BYTES, offset_index.encode(offsets)),
            (segment.path(TIME_INDEX_SUFFIX), times * TIME_ENTRY_BYTES, time_index.encode(times)),
        ]

    def remove(self) -> None:
        """Remove files that say more than is true any more."""
        segment = self._segment
        segment.closed = False
        self._written = 0, 0
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            if segment.folder.disk.exists(segment.path(suffix)):
                segment.folder.disk.remove(segment.path(suffix))

    def read(self, file_bytes: int, upto: Offset | None) -> tuple[OffsetIndex, TimeIndex] | None:
        """Read both files, as far as they are about offsets below `upto`.

        None where one is missing, garbled, or not about these batches.
        """
        segment = self._segment
        offset_content = read_file(segment.folder.disk, segment.path(INDEX_SUFFIX), segment.folder.files)
        time_content = read_file(segment.folder.disk, segment.path(TIME_INDEX_SUFFIX), segment.folder.files)
        if offset_content is None or time_content is None:
            return None
        offset_index = OffsetIndex.decode(segment.base_offset, offset_content)
        time_index = TimeIndex.decode(segment.base_offset, time_content)
        if offset_index is None or time_index is None:
            return None
        if upto is not None:
            offset_index.truncate_offsets(upto)
            time_index.truncate(offset_index.end_offset)
        if not len(offset_index):
            return offset_index, TimeIndex(segment.base_offset)
        last = offset_index[-1]
        for _, header in scan_headers(segment.file(), last.position, file_bytes, chunk_bytes=LOOKUP_CHUNK_BYTES):
            if header.last_offset != last.last_offset:
                return None
            if not len(time_index) or header.max_timestamp > time_index[-1].timestamp:
                return None
            return offset_index, time_index
        return None
