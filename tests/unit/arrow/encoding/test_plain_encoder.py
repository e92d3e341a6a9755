"""Rows to batches, record by record; that the kernel does the same is shown by the property tests."""

import pyarrow as pa
import pytest

from riverlog.arrow.encoding.plain_encoder import PlainEncoder
from riverlog.arrow.encoding.rows import EncodingRules, TopicIndex, rows_of
from riverlog.client.errors import KafkaError
from riverlog.client.producer.partitioner import murmur2
from riverlog.records.batch import Compression, read_header
from riverlog.records.record import read_batch

ROWS = pa.record_batch({"value": [b"x" * 50] * 10})


def encode(rules: EncodingRules, *frames: pa.RecordBatch, partitions: int = 3) -> list[tuple[int, int]]:
    """Encode frames; give partition and count of each batch."""
    topics = TopicIndex(lambda _: partitions)
    encoder = PlainEncoder(rules, topics)
    for frame in frames:
        encoder.add(rows_of(frame, rules, topics, now_ms=77))
    return [(batch.partition.partition, batch.count) for batch in encoder.batches()]


def test_rows_without_a_key_stay_together_and_batches_are_never_larger_than_wanted() -> None:
    assert encode(EncodingRules(topic="t"), ROWS, ROWS) == [(0, 20)]
    assert encode(EncodingRules(topic="t", batch_bytes_max=300, first_partition=5), ROWS) == [
        (2, 3),
        (2, 1),
        (0, 3),
        (0, 1),
        (1, 2),
    ]


def test_a_row_larger_than_a_batch_is_a_batch() -> None:
    assert encode(EncodingRules(topic="t", batch_bytes_max=100), ROWS.slice(0, 2)) == [(0, 1), (0, 1)]


def test_a_key_has_its_partition_as_in_every_client() -> None:
    keys = [b"21", b"foobar", b""]
    frame = pa.record_batch({"value": [b"v"] * 3, "key": keys})
    expected = [((murmur2(key) & 0x7FFF_FFFF) % 1_000, 1) for key in keys]
    assert encode(EncodingRules(topic="t"), frame, partitions=1_000) == expected


def test_a_batch_is_marked_and_folded_as_wanted() -> None:
    rules = EncodingRules(topic="t", compression=Compression.ZSTD, transactional=True)
    topics = TopicIndex(lambda _: 1)
    encoder = PlainEncoder(rules, topics)
    encoder.add(rows_of(ROWS, rules, topics, now_ms=77))
    (batch,) = encoder.batches()
    header = read_header(batch.content)
    assert (header.compression, header.is_transactional, header.producer_id) == (Compression.ZSTD, True, -1)
    assert [record.timestamp for record in read_batch(batch.content)] == [77] * 10
    assert encoder.batches() == []


def test_a_row_that_is_too_large_or_lost_is_refused() -> None:
    with pytest.raises(KafkaError, match="147 bytes, and 100 are allowed"):
        encode(EncodingRules(topic="t", record_bytes_max=100), ROWS)
    with pytest.raises(KafkaError, match="partitions 0 to 2, and a row names 3"):
        encode(EncodingRules(topic="t"), pa.record_batch({"value": [b"v"], "partition": pa.array([3], pa.int32())}))
