"""Rows to record batches by the kernel: sizes first, then one buffer that holds all batches, each with its header."""

from typing import NamedTuple

import numpy as np

from riverlog.arrow.decoding.kernel import Ints, Longs
from riverlog.arrow.encoding import kernel
from riverlog.arrow.encoding.kernel_columns import (
    ContentColumn,
    HeaderColumn,
    content_column,
    header_column,
    number_column,
    times,
    topic_numbers,
)
from riverlog.arrow.encoding.rows import (
    RECORD_OVERHEAD,
    EncodingRules,
    Rows,
    TopicIndex,
    pairs_of,
    size_max,
    unfit_header,
    unfit_partition,
    unfit_size,
)
from riverlog.client.errors import KafkaError
from riverlog.client.producer.deliveries import EncodedBatch
from riverlog.records.batch import HEADER_BYTES, TRANSACTIONAL, Compression
from riverlog.records.compression import compress
from riverlog.records.record import write_header


class Planned(NamedTuple):
    """Rows whose batches and sizes are known."""

    rows: int
    keys: ContentColumn
    values: ContentColumn
    timestamps_ms: Longs
    headers: HeaderColumn
    batches: Ints
    sizes: Ints


class CompiledEncoder:
    """Makes batches of rows: those of `PlainEncoder`, byte for byte."""

    def __init__(self, rules: EncodingRules, topics: TopicIndex) -> None:
        self._rules = rules
        self._names = topics
        self._topics: Longs = np.empty((0, kernel.TOPIC_FIELDS), np.int64)
        self._slots: list[tuple[int, int]] = []  # (topic's number, partition)
        self._open: Longs = np.empty(0, np.int64)  # slot -> its batch, or -1
        self._batches: Longs = np.empty((0, kernel.BATCH_FIELDS), np.int64)
        self._count = 0
        self._planned: list[Planned] = []

    def add(self, rows: Rows) -> None:
        """Take rows; KafkaError for the first that no record can be made of."""
        self._know_topics()
        count = rows.count
        keys, values = content_column(rows.keys, count), content_column(rows.values, count)
        headers, partitions = header_column(rows.headers, count), number_column(rows.partitions, count)
        topics, timestamps_ms = topic_numbers(rows.topics, count, len(self._topics)), times(rows.timestamps_ms, count)
        self._make_room(count, keys.size + values.size + headers.size)
        row_batches, row_sizes = np.empty(rows.count, np.int32), np.empty(rows.count, np.int32)
        self._count, flaw, row = kernel.plan(
            rows.count,
            keys,
            values,
            topics,
            partitions,
            timestamps_ms,
            headers,
            self._rules.batch_bytes_max,
            self._rules.record_bytes_max,
            self._topics,
            self._open,
            self._batches,
            self._count,
            row_batches,
            row_sizes,
        )
        if flaw:
            raise self._refusal(flaw, rows, row)
        self._planned.append(Planned(rows.count, keys, values, timestamps_ms, headers, row_batches, row_sizes))

    def batches(self) -> list[EncodedBatch]:
        """Return all batches, in the order in which they were begun, and go on without them."""
        table = self._batches[: self._count]
        ends = np.cumsum(table[:, kernel.SIZE] + HEADER_BYTES)
        starts = ends - table[:, kernel.SIZE]
        output = np.empty(int(ends[-1]) if self._count else 0, np.uint8)
        positions, filled = starts.copy(), np.zeros(self._count, np.int64)
        for planned in self._planned:
            kernel.fill(
                planned.rows,
                planned.keys,
                planned.values,
                planned.timestamps_ms,
                planned.headers,
                planned.batches,
                planned.sizes,
                self._batches,
                filled,
                positions,
                output,
            )
        view = memoryview(output.data)
        built = [
            self._build(row, view[start - HEADER_BYTES : end])
            for row, start, end in zip(table.tolist(), starts.tolist(), ends.tolist(), strict=True)
        ]
        self._planned.clear()
        self._count = 0
        self._open[:] = -1
        return built

    def _build(self, row: list[int], batch: memoryview) -> EncodedBatch:
        codec = self._rules.compression
        content: memoryview = batch
        if codec is not Compression.NONE:
            folded = bytearray(HEADER_BYTES)
            folded += compress(codec, batch[HEADER_BYTES:], self._rules.level)
            content = memoryview(folded)
        write_header(
            content,
            attributes=codec | (TRANSACTIONAL if self._rules.transactional else 0),
            count=row[kernel.COUNT],
            first_timestamp=row[kernel.FIRST_MS],
            max_timestamp=row[kernel.MAX_MS],
        )
        return EncodedBatch(self._names.partition(*self._slots[row[kernel.SLOT]]), content, row[kernel.COUNT])

    def _know_topics(self) -> None:
        """Add the partitions of topics that were met since the last rows."""
        known, names = len(self._topics), self._names
        if known == len(names.names):
            return
        added = np.empty((len(names.names) - known, kernel.TOPIC_FIELDS), np.int64)
        for number, row in enumerate(added, known):
            row[:] = (len(self._slots), names.counts[number], self._rules.first_partition - 1, 0)
            self._slots += [(number, partition) for partition in range(names.counts[number])]
        self._topics = np.concatenate([self._topics, added])
        self._open = np.concatenate([self._open, np.full(len(self._slots) - len(self._open), -1, np.int64)])

    def _make_room(self, rows: int, size: int) -> None:
        """Add room for as many batches as these rows can begin: two in a row of one partition are more than full."""
        bound = size + rows * RECORD_OVERHEAD
        begun_max = min(rows, len(self._slots) + 2 * (bound // max(1, self._rules.batch_bytes_max - HEADER_BYTES) + 1))
        if self._count + begun_max > len(self._batches):
            more = np.empty((max(self._count + begun_max, 2 * len(self._batches)), kernel.BATCH_FIELDS), np.int64)
            more[: self._count] = self._batches[: self._count]
            self._batches = more

    def _refusal(self, flaw: int, rows: Rows, row: int) -> KafkaError:
        if flaw == kernel.UNFIT_HEADER:
            return unfit_header()
        if flaw == kernel.UNFIT_SIZE:
            key, value, headers = (
                None if column is None else column[row].as_py() for column in (rows.keys, rows.values, rows.headers)
            )
            return unfit_size(size_max(key, value, pairs_of(headers)), self._rules)
        number = 0 if rows.topics is None else int(rows.topics[row])
        return unfit_partition(self._names, number, rows.partitions[row].as_py())
