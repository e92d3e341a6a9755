"""Batches that have their offsets already, as a follower gets them: checked before they are appended."""

from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import Offset
from riverlog.records.batch import BatchHeader, checksum, headers
from riverlog.records.control import Marker, read_marker
from riverlog.records.errors import CorruptBatch


def check_assigned(batches: memoryview, expected: Offset) -> list[tuple[int, BatchHeader, Marker | None]]:
    """Find the whole batches: where each begins, its header, and what it says as a marker.

    Raises Refusal where they do not follow the expected offset and one another, or one is damaged.
    """
    found: list[tuple[int, BatchHeader, Marker | None]] = []
    for position, header in headers(batches):
        if header.base_offset < expected:
            raise Refusal(
                ErrorCode.INVALID_RECORD, f"a batch begins at offset {header.base_offset}, but {expected} is next"
            )
        batch = batches[position : position + header.size]
        if checksum(batch) != header.crc:
            raise Refusal(ErrorCode.CORRUPT_MESSAGE, f"the batch at offset {header.base_offset} is damaged")
        try:
            found.append((position, header, read_marker(batch) if header.is_control else None))
        except CorruptBatch as error:
            raise Refusal(ErrorCode.CORRUPT_MESSAGE, f"the batch at offset {header.base_offset}: {error}") from error
        expected = header.next_offset
    return found
