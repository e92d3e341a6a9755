"""Rows that are to become records: the columns of an Arrow batch as an encoder reads them, and where each row goes.

    value binary or string · key binary or string · topic string · partition int32
    timestamp timestamp[us] · headers list<struct<key: string, value: binary>>

in any layout that Arrow has for them (`layouts`). Only `value` must be there. A row goes to the partition that it
names; otherwise to the one of its key, as in every Kafka client; without a key it stays with its predecessors until
they are a batch's worth of bytes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from riverlog.arrow.encoding.layouts import ENDS_MAX, TooLarge, contents, header_lists, names_of, numbers, times_ms
from riverlog.client.errors import KafkaError
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.records.batch import HEADER_BYTES, Compression

BATCH_BYTES_MAX: Final = 1_000_000
"""A little less than a topic takes unless it is told otherwise (max.message.bytes)."""
RECORD_OVERHEAD: Final = 36
"""What a record has at most beside its key, value and headers: six numbers and its attributes."""
HEADER_OVERHEAD: Final = 10
"""What a header has at most beside its name and value: two lengths."""


Headers = list[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class Rows:
    """The columns of a batch in the types that encoders know. What is not there is None: null in each row."""

    count: int
    values: Any
    keys: Any
    topics: NDArray[np.int32] | None
    """For each row the number of its topic among the encoder's topics."""
    partitions: Any
    timestamps_ms: NDArray[np.int64]
    headers: Any


@dataclass(frozen=True, slots=True)
class EncodingRules:
    """How rows become batches."""

    topic: str | None = None
    """Where all rows go, whatever their own topic is."""
    batch_bytes_max: int = BATCH_BYTES_MAX
    record_bytes_max: int = 32 * 1024 * 1024
    """A record that may need more, with the header of its batch, is refused."""
    compression: Compression = Compression.NONE
    level: int | None = None
    transactional: bool = False
    first_partition: int = 0
    """Where rows without a key begin; writers that have different numbers begin at different partitions."""


@dataclass(slots=True)
class TopicIndex:
    """The topics that rows go to, in the order in which they were met, with the number of their partitions."""

    count_partitions: Callable[[str], int]
    """Asks the cluster; KafkaError where there is no such topic."""
    names: list[str] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def number_of(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            count = self.count_partitions(name)
            number = self._numbers[name] = len(self.names)
            self.names.append(name)
            self.counts.append(count)
        return number

    def partition(self, number: int, index: int) -> TopicPartition:
        return TopicPartition(self.names[number], index)


def rows_of(batch: pa.RecordBatch, rules: EncodingRules, topics: TopicIndex, *, now_ms: int) -> Rows:
    """Read the columns of a batch; rows without a time get this one. KafkaError for a type that is not one of those."""
    values, keys, partitions, timestamps, headers = (
        _column(batch, name) for name in ("value", "key", "partition", "timestamp", "headers")
    )
    return Rows(
        count=batch.num_rows,
        values=None if values is None else contents(values, "value"),
        keys=None if keys is None else contents(keys, "key"),
        topics=_topics(batch, rules, topics),
        partitions=None if partitions is None else numbers(partitions),
        timestamps_ms=np.full(batch.num_rows, now_ms, np.int64) if timestamps is None else times_ms(timestamps, now_ms),
        headers=None if headers is None else header_lists(headers),
    )


def fitting(batch: pa.RecordBatch, rules: EncodingRules, topics: TopicIndex, *, now_ms: int) -> Iterator[Rows]:
    """Read the columns of a batch in as many parts as they need; KafkaError for a row that is too large for any."""
    try:
        whole = rows_of(batch, rules, topics, now_ms=now_ms)
    except TooLarge:
        if batch.num_rows == 1:
            raise unfit_size(ENDS_MAX, rules) from None
        half = batch.num_rows // 2
        for part in (batch.slice(0, half), batch.slice(half)):
            yield from fitting(part, rules, topics, now_ms=now_ms)
    else:
        yield whole


def pairs_of(headers: list[dict[str, Any] | None] | None) -> Headers:
    """Read a row's headers; KafkaError for one that has no name."""
    pairs: Headers = []
    for header in headers or ():
        if header is None or header["key"] is None:
            raise unfit_header()
        pairs.append((header["key"], header["value"]))
    return pairs


def size_max(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Return a bound on the bytes of a record."""
    size = RECORD_OVERHEAD + len(key or b"") + len(value or b"")
    for name, content in headers:
        size += HEADER_OVERHEAD + len(name.encode()) + len(content or b"")
    return size


def unfit_partition(topics: TopicIndex, number: int, index: int) -> KafkaError:
    """Refuse a row that names a partition that its topic does not have."""
    return KafkaError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        f"topic {topics.names[number]!r} has partitions 0 to {topics.counts[number] - 1}, and a row names {index}",
    )


def unfit_size(size: int, rules: EncodingRules) -> KafkaError:
    """Refuse a row that is too large for any request."""
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"a row needs up to {size + HEADER_BYTES} bytes, and {rules.record_bytes_max} are allowed; raise "
        "kafka.max.request.size, and the topic's max.message.bytes where that is smaller",
    )


def unfit_header() -> KafkaError:
    """Refuse a row that has a header without a name."""
    return KafkaError(ErrorCode.INVALID_RECORD, "a row has a header without a name, and every header needs one")


def _column(batch: pa.RecordBatch, name: str) -> Any:
    return batch.column(name) if name in batch.schema.names else None


def _topics(batch: pa.RecordBatch, rules: EncodingRules, topics: TopicIndex) -> NDArray[np.int32] | None:
    if rules.topic is not None:
        number = topics.number_of(rules.topic)
        assert number == 0, "the only topic is the first"
        return None
    column = names_of(batch.column("topic"), "topic")
    if column is None or column.null_count:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            'a row has no topic: its column "topic" is null, and no option "topic" says where such rows go',
        )
    encoded = column.dictionary_encode()
    places = np.array([topics.number_of(name) for name in encoded.dictionary.to_pylist()], np.int32)
    return places[encoded.indices.to_numpy()] if len(places) else np.empty(0, np.int32)
