"""Batches on their way to columns: checked, seen by the reader, unfolded, and gathered to portions of a size.

A portion is what becomes one Arrow batch. It is never so large that the 32 bits of Arrow's offsets run out: a batch
unfolds to less than that, and none is added to a portion that is full.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from riverlog.arrow.columns import OFFSET_MAX, Cut
from riverlog.client.consumer.fetched_records import Chunk
from riverlog.client.errors import CorruptRecords
from riverlog.model.ids import TopicPartition
from riverlog.model.limits import DECOMPRESSED_BYTES_MAX, RESPONSE_BYTES_MAX
from riverlog.model.ports import Buffer
from riverlog.records.batch import BatchHeader
from riverlog.records.errors import CorruptBatch
from riverlog.records.record import unfolded

PORTION_BYTES: Final = 4 * 1024 * 1024
"""A portion that has as much is full, unless the caller wants smaller ones."""

assert PORTION_BYTES + max(DECOMPRESSED_BYTES_MAX, RESPONSE_BYTES_MAX) < 2**31


class Run(NamedTuple):
    """The records of one batch, unfolded."""

    header: BatchHeader
    content: Buffer


def portions(
    chunk: Chunk, partition: TopicPartition, cut: Cut, *, portion_bytes: int = PORTION_BYTES
) -> Iterator[list[Run]]:
    """Yield what of a chunk may have wanted rows; CorruptRecords names a batch that is broken."""
    portion: list[Run] = []
    size = 0
    while (raw := chunk.next_raw(partition, cut.from_offset)) is not None:
        header = raw.header
        if header.base_offset < 0 or header.last_offset_delta < 0 or header.last_offset > OFFSET_MAX:
            raise CorruptRecords(partition, header.base_offset, f"it ends at offset {header.last_offset}")
        if header.base_offset >= cut.until_offset:
            break
        if not raw.is_visible:
            continue
        try:
            content = unfolded(raw.content, header)
        except CorruptBatch as problem:
            raise CorruptRecords(partition, header.base_offset, problem.message) from problem
        portion.append(Run(header, content))
        size += len(content)
        if size >= portion_bytes:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
