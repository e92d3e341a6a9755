"""Fetched chunks to Arrow batches: by the kernel where it is worth loading, without it otherwise.

Loading numba and the kernel takes most of a second in a new process; by then a few hundred thousand records are
decoded without them.
"""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Protocol

from riverlog.arrow.columns import Cut
from riverlog.arrow.decoding.runs import PORTION_BYTES, Run, portions
from riverlog.arrow.extras import has
from riverlog.client.consumer.fetched_records import Chunk
from riverlog.model.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

KERNEL_ROWS_MIN: Final = 100_000
"""Fewer rows are decoded sooner than the kernel is loaded."""


class Decode(Protocol):
    """What `plain` and `compiled` both offer."""

    def __call__(
        self, runs: "Sequence[Run]", partition: TopicPartition, schema: "pa.Schema", cut: Cut
    ) -> "pa.RecordBatch":
        """Decode a portion to one Arrow batch, which may have no rows."""


def is_kernel_worth_loading(rows: int, least: int, kernel: str = "riverlog.arrow.decoding.kernel") -> bool:
    """Return whether about as many rows are done sooner with numba; where it is loaded already, any number is."""
    return has("numba") and (rows >= least or kernel in sys.modules)


def decoder_for(rows: int) -> Decode:
    """Choose how to decode about as many rows."""
    if is_kernel_worth_loading(rows, KERNEL_ROWS_MIN):
        from riverlog.arrow.decoding.compiled_decoder import record_batch as compiled

        return compiled
    from riverlog.arrow.decoding.plain_decoder import record_batch as plain

    return plain


def record_batches(
    decode: Decode,
    chunk: Chunk,
    partition: TopicPartition,
    schema: "pa.Schema",
    cut: Cut,
    *,
    portion_bytes: int = PORTION_BYTES,
) -> "Iterator[pa.RecordBatch]":
    """Decode the wanted rows of a chunk, in batches that have rows; CorruptRecords names a broken one."""
    for portion in portions(chunk, partition, cut, portion_bytes=portion_bytes):
        batch = decode(portion, partition, schema, cut)
        if batch.num_rows:
            yield batch
