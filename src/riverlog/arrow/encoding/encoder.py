"""Arrow batches to record batches: rows are gathered until there are enough of them for batches of a good size.

By the kernel where it is worth loading, without it otherwise; both give the same bytes.
"""

import time
from typing import Final, Protocol

import pyarrow as pa

from riverlog.arrow.decoding.decoder import is_kernel_worth_loading
from riverlog.arrow.encoding.plain_encoder import PlainEncoder
from riverlog.arrow.encoding.rows import EncodingRules, Rows, TopicIndex, fitting
from riverlog.client.producer.deliveries import EncodedBatch

GATHERED_BYTES_MAX: Final = 8 * 1024 * 1024
"""Rows of as many bytes are made to batches, and sent, before more are taken."""
KERNEL_ROWS_MIN: Final = 50_000
"""Fewer rows are encoded sooner than the kernel is loaded."""
_KERNEL: Final = "riverlog.arrow.encoding.kernel"


class RowEncoder(Protocol):
    """What `plain` and `compiled` both offer."""

    def add(self, rows: Rows) -> None:
        """Take rows; KafkaError for the first that no record can be made of."""

    def batches(self) -> list[EncodedBatch]:
        """Return the batches of all rows that were taken, and go on without them."""


class Encoder:
    """Makes record batches of Arrow batches. Rows of one partition keep their order."""

    def __init__(
        self,
        rules: EncodingRules,
        topics: TopicIndex,
        *,
        rows_before: int = 0,
        kernel_rows_min: int = KERNEL_ROWS_MIN,
        gathered_bytes_max: int = GATHERED_BYTES_MAX,
    ) -> None:
        self._rules = rules
        self._topics = topics
        self._rows: RowEncoder = PlainEncoder(rules, topics)
        self._is_plain = True
        self._kernel_rows_min = kernel_rows_min
        self._bytes_max = gathered_bytes_max
        self._gathered = 0
        self.row_count = rows_before
        """Rows that were encoded, here and before in this process: the kernel may be worth loading for all of them."""

    def add(self, batch: pa.RecordBatch) -> list[EncodedBatch]:
        """Take rows, and return what is to be sent by now: nothing while there is little."""
        if batch.num_rows == 0:
            return []
        self.row_count += batch.num_rows
        before: list[EncodedBatch] = []
        if self._is_plain and is_kernel_worth_loading(self.row_count, self._kernel_rows_min, _KERNEL):
            before = self.finish()
            self._load_kernel()
        for rows in fitting(batch, self._rules, self._topics, now_ms=time.time_ns() // 1_000_000):
            self._rows.add(rows)
        self._gathered += batch.nbytes
        return before + self.finish() if self._gathered >= self._bytes_max else before

    def finish(self) -> list[EncodedBatch]:
        """Return all batches that were not returned yet."""
        self._gathered = 0
        return self._rows.batches()

    def _load_kernel(self) -> None:
        from riverlog.arrow.encoding.compiled_encoder import CompiledEncoder

        self._rows = CompiledEncoder(self._rules, self._topics)
        self._is_plain = False
