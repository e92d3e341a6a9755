"""Rows to record batches without numba: a builder per batch. Slow, short, and what the kernel is compared with."""

from riverlog.arrow.encoding.rows import (
    EncodingRules,
    Headers,
    Rows,
    TopicIndex,
    pairs_of,
    size_max,
    unfit_partition,
    unfit_size,
)
from riverlog.client.producer.deliveries import EncodedBatch
from riverlog.client.producer.partitioner import murmur2
from riverlog.records.batch import HEADER_BYTES
from riverlog.records.record import BatchBuilder


class PlainEncoder:
    """Makes batches of rows."""

    def __init__(self, rules: EncodingRules, topics: TopicIndex) -> None:
        self._rules = rules
        self._topics = topics
        self._batches: list[tuple[tuple[int, int], BatchBuilder]] = []
        self._open: dict[tuple[int, int], BatchBuilder] = {}  # (topic's number, partition) -> where its rows go
        self._sticky: dict[int, tuple[int, int]] = {}  # topic's number -> partition, bytes still to go there

    def add(self, rows: Rows) -> None:
        """Take rows; KafkaError for the first that no record can be made of."""
        count = rows.count
        keys, values, partitions, headers = (
            [None] * count if column is None else column.to_pylist()
            for column in (rows.keys, rows.values, rows.partitions, rows.headers)
        )
        places = [0] * count if rows.topics is None else rows.topics.tolist()
        times = rows.timestamps_ms.tolist()
        for number, key, value, partition, pairs, time in zip(
            places, keys, values, partitions, headers, times, strict=True
        ):
            self._append(number, key, value, partition, pairs_of(pairs), time)

    def batches(self) -> list[EncodedBatch]:
        """Return all batches, in the order in which they were begun, and go on without them."""
        built = [
            EncodedBatch(self._topics.partition(*slot), memoryview(builder.build()), builder.count)
            for slot, builder in self._batches
        ]
        self._batches.clear()
        self._open.clear()
        return built

    def _append(
        self, number: int, key: bytes | None, value: bytes | None, partition: int | None, headers: Headers, time: int
    ) -> None:
        size = size_max(key, value, headers)
        if size + HEADER_BYTES > self._rules.record_bytes_max:
            raise unfit_size(size, self._rules)
        slot = (number, self._partition(number, key, partition, size))
        builder = self._open.get(slot)
        if builder is None or builder.size + size > self._rules.batch_bytes_max:
            rules = self._rules
            builder = BatchBuilder(rules.compression, level=rules.level, transactional=rules.transactional)
            self._open[slot] = builder
            self._batches.append((slot, builder))
        builder.append(key, value, headers, timestamp_ms=time)

    def _partition(self, number: int, key: bytes | None, partition: int | None, size: int) -> int:
        count = self._topics.counts[number]
        if partition is not None:
            if not 0 <= partition < count:
                raise unfit_partition(self._topics, number, partition)
            return partition
        if key is not None:
            return (murmur2(key) & 0x7FFF_FFFF) % count
        current, bytes_left = self._sticky.get(number, (self._rules.first_partition - 1, 0))
        if bytes_left <= 0:
            current, bytes_left = (current + 1) % count, self._rules.batch_bytes_max
        self._sticky[number] = (current, bytes_left - size)
        return current
