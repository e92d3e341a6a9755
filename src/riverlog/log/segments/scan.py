"""Walking a segment file batch by batch, in bounded reads, for as long as the bytes are batches.

`scan_headers` reads headers only; `scan_batches` gives whole batches, for checksums. Both stop without a word
where the next bytes are no whole batch: the caller compares where they stopped with where they should have.
"""

from collections.abc import Iterator
from typing import Final

from riverlog.model.ids import NO_EPOCH
from riverlog.model.ports import File
from riverlog.records.batch import HEADER_BYTES, LOG_OVERHEAD, MAGIC, BatchHeader, read_header

LOOKUP_CHUNK_BYTES: Final = 8 * 1024
SCAN_CHUNK_BYTES: Final = 256 * 1024


def scan_headers(
    file: File, position: int, end: int, *, chunk_bytes: int = SCAN_CHUNK_BYTES
) -> Iterator[tuple[int, BatchHeader]]:
    """Walk the headers of the whole batches from `position` on: where each begins, and what it says."""
    chunk, chunk_start = b"", position
    while end - position >= HEADER_BYTES:
        if position + HEADER_BYTES > chunk_start + len(chunk):
            chunk, chunk_start = file.read(position, min(chunk_bytes, end - position)), position
            if len(chunk) < HEADER_BYTES:
                return
        header = read_header(chunk, position - chunk_start)
        if not is_plausible(header) or header.size > end - position:
            return
        yield position, header
        position += header.size


def read_batch_header(file: File, position: int, end: int) -> BatchHeader | None:
    """Read the header of the whole batch that begins here; None where none does."""
    if end - position < HEADER_BYTES or len(content := file.read(position, HEADER_BYTES)) < HEADER_BYTES:
        return None
    header = read_header(content, 0)
    return header if is_plausible(header) and header.size <= end - position else None


def scan_batches(
    file: File, position: int, end: int, *, look_past_prefix: bool = False
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Walk the whole batches from `position` on, with their bytes. Checksums are the caller's.

    Some fields before the checksum say nothing about where a batch ends: a wrong one need not end the walk.
    """
    is_batch = is_delimited if look_past_prefix else is_plausible
    chunk, chunk_start, chunk_end = memoryview(b""), position, position
    while end - position >= HEADER_BYTES:
        if position + HEADER_BYTES > chunk_end:
            chunk, chunk_start = memoryview(file.read(position, min(SCAN_CHUNK_BYTES, end - position))), position
            chunk_end = position + len(chunk)
            if len(chunk) < HEADER_BYTES:
                return
        header = read_header(chunk, position - chunk_start)
        size = header.size
        if not is_batch(header) or size > end - position:
            return
        if position + size > chunk_end:
            wanted = min(max(size, SCAN_CHUNK_BYTES), end - position)
            chunk, chunk_start = memoryview(file.read(position, wanted)), position
            chunk_end = position + len(chunk)
            if len(chunk) < size:
                return
        start = position - chunk_start
        yield position, header, chunk[start : start + size]
        position += size


def is_plausible(header: BatchHeader) -> bool:
    """Return whether these could be the first bytes of a batch; zeros are not."""
    return (
        is_delimited(header)
        and header.base_offset >= 0
        and header.last_offset_delta >= 0
        and header.leader_epoch >= NO_EPOCH
    )


def is_delimited(header: BatchHeader) -> bool:
    """Return whether magic and length are those of a batch, whatever the other fields say."""
    return header.magic == MAGIC and header.length >= HEADER_BYTES - LOG_OVERHEAD
