"""Looking into the files of any partition folder without opening it as a log: nothing is changed, nothing locked.

Each entry comes with a verdict: empty where all is well, else a sentence. Works on Kafka's own files too.
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple

from riverlog.log.checkpoint import read_file
from riverlog.log.recovery.recovery import list_folder
from riverlog.log.segments.index import OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES
from riverlog.log.segments.log_folder import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, path_of
from riverlog.log.segments.scan import scan_batches
from riverlog.model.ids import Offset
from riverlog.model.ports import Disk
from riverlog.records.batch import BatchHeader, checksum

_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")

_Batch = tuple[int, BatchHeader, memoryview]


class DumpedBatch(NamedTuple):
    """A batch of a segment; the bytes behind the last whole one come as a batch without a header."""

    position: int
    size: int
    header: BatchHeader | None
    batch: memoryview | None
    verdict: str


class DumpedOffset(NamedTuple):
    """An entry of an offset index."""

    last_offset: Offset
    position: int
    verdict: str


class DumpedTime(NamedTuple):
    """An entry of a time index."""

    timestamp: int
    last_offset: Offset
    verdict: str


def segments_of(disk: Disk, folder: str) -> list[Offset]:
    """List the base offsets of the segments in a partition's folder."""
    return list_folder(disk, folder).segments


def dump_batches(disk: Disk, folder: str, base_offset: Offset) -> Iterator[DumpedBatch]:
    """Walk the batches of a segment, verifying checksums and the order of offsets."""
    return dump_file(disk, path_of(folder, base_offset, LOG_SUFFIX), base_offset)


def dump_file(disk: Disk, path: str, base_offset: Offset) -> Iterator[DumpedBatch]:
    """Walk the batches of any file of them, as a snapshot of the metadata log is one."""
    file = disk.open(path)
    try:
        end = file.size()
        behind, next_offset = 0, base_offset
        for (position, header, batch), follower in _with_follower(scan_batches(file, 0, end, look_past_prefix=True)):
            if checksum(batch) != header.crc:
                verdict = "the checksum does not match"
            elif header.base_offset < next_offset:
                verdict = f"offset {header.base_offset} comes again or too late; {next_offset} is next"
            elif follower is not None and next_offset < follower.base_offset <= header.base_offset:
                verdict = f"offset {header.base_offset} comes too early; the next batch has {follower.base_offset}"
            else:
                verdict = ""
            yield DumpedBatch(position, header.size, header, batch, verdict)
            behind = position + header.size
            if not verdict:  # a checksum does not cover the base offset: a wrong one says nothing about the others
                next_offset = header.next_offset
        if behind < end:
            rest = file.read(behind, min(end - behind, 4096))
            verdict = "zeros to the end" if not any(rest) else "no whole batch"
            yield DumpedBatch(behind, end - behind, None, None, verdict)
    finally:
        file.close()


def _with_follower(batches: Iterable[_Batch]) -> Iterator[tuple[_Batch, BatchHeader | None]]:
    """Pair each batch with the header of the next one."""
    waiting: _Batch | None = None
    for batch in batches:
        if waiting is not None:
            yield waiting, batch[1]
        waiting = batch
    if waiting is not None:
        yield waiting, None


def dump_offsets(disk: Disk, folder: str, base_offset: Offset) -> Iterator[DumpedOffset]:
    """Walk the entries of an offset index, each compared with the batch it names."""
    content = read_file(disk, path_of(folder, base_offset, INDEX_SUFFIX)) or b""
    batches = {found.position: found.header for found in dump_batches(disk, folder, base_offset)}
    previous = DumpedOffset(Offset(base_offset - 1), -1, "")
    for start in range(0, len(content) - len(content) % OFFSET_ENTRY_BYTES, OFFSET_ENTRY_BYTES):
        relative, position = _OFFSET_ENTRY.unpack_from(content, start)
        if start and relative == position == 0:
            return
        last_offset = Offset(base_offset + relative)
        header = batches.get(position)
        if last_offset <= previous.last_offset or position <= previous.position:
            verdict = "not behind the entry before it"
        elif header is None:
            verdict = "no batch begins at this position"
        elif header.last_offset != last_offset:
            verdict = f"the batch at this position ends with offset {header.last_offset}"
        else:
            verdict = ""
        previous = DumpedOffset(last_offset, position, verdict)
        yield previous


def dump_times(disk: Disk, folder: str, base_offset: Offset) -> Iterator[DumpedTime]:
    """Walk the entries of a time index, each compared with the batch it names and with those before that."""
    content = read_file(disk, path_of(folder, base_offset, TIME_INDEX_SUFFIX)) or b""
    latest: dict[Offset, tuple[int, int]] = {}
    latest_so_far = -1
    for found in dump_batches(disk, folder, base_offset):
        if found.header is not None:
            latest_so_far = max(latest_so_far, found.header.max_timestamp)
            latest[found.header.last_offset] = found.header.max_timestamp, latest_so_far
    previous = DumpedTime(-1, Offset(base_offset - 1), "")
    for start in range(0, len(content) - len(content) % TIME_ENTRY_BYTES, TIME_ENTRY_BYTES):
        timestamp, relative = _TIME_ENTRY.unpack_from(content, start)
        if start and timestamp == relative == 0:
            return
        last_offset = Offset(base_offset + relative)
        own, largest = latest.get(last_offset, (None, None))
        if timestamp <= previous.timestamp or last_offset <= previous.last_offset:
            verdict = "not behind the entry before it"
        elif own is None:
            verdict = "no batch ends with this offset"
        elif own != timestamp:
            verdict = f"the batch that ends with this offset has timestamp {own}"
        elif largest != timestamp:
            verdict = f"an earlier batch has timestamp {largest}"
        else:
            verdict = ""
        previous = DumpedTime(timestamp, last_offset, verdict)
        yield previous
