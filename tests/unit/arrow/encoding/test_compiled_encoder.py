"""The compiled encoder over many rows: topics that come late, batches that fill up, frames that are slices."""

import numpy as np
import pyarrow as pa
import pytest

from riverlog.arrow.encoding.compiled_encoder import CompiledEncoder
from riverlog.arrow.encoding.plain_encoder import PlainEncoder
from riverlog.arrow.encoding.rows import EncodingRules, TopicIndex, rows_of
from riverlog.client.errors import KafkaError


def encode(
    kind: type[CompiledEncoder] | type[PlainEncoder], rules: EncodingRules, frames: list[pa.RecordBatch]
) -> list[tuple[str, int, int, bytes]]:
    topics = TopicIndex({"a": 2, "b": 40, "orders": 3}.__getitem__)
    encoder = kind(rules, topics)
    for frame in frames:
        encoder.add(rows_of(frame, rules, topics, now_ms=77))
    return [(*batch.partition, batch.count, bytes(batch.content)) for batch in encoder.batches()]


def frame(rows: int, seed: int, **more: list[str]) -> pa.RecordBatch:
    chance = np.random.default_rng(seed)
    lengths = chance.integers(0, 300, rows)
    values = [b"v" * length if length % 7 else None for length in lengths.tolist()]
    keys = [b"%d" % length if length % 3 else None for length in lengths.tolist()]
    return pa.record_batch({"value": pa.array(values, pa.binary()), "key": pa.array(keys, pa.binary()), **more})


@pytest.mark.parametrize("batch_bytes_max", [1_024, 30_000, 1_000_000])
def test_many_rows_in_many_batches(batch_bytes_max: int) -> None:
    rules = EncodingRules(topic="orders", batch_bytes_max=batch_bytes_max)
    frames = [frame(3_000, 1), frame(1, 2), frame(2_000, 3).slice(13, 1_500)]
    assert encode(CompiledEncoder, rules, frames) == encode(PlainEncoder, rules, frames)


def test_topics_may_come_late() -> None:
    frames = [frame(100, 1, topic=["a"] * 100), frame(100, 2, topic=["b", "a"] * 50)]
    rules = EncodingRules()
    assert encode(CompiledEncoder, rules, frames) == encode(PlainEncoder, rules, frames)


def test_nothing_gives_nothing() -> None:
    assert encode(CompiledEncoder, EncodingRules(topic="a"), []) == []


def test_a_row_that_is_too_large_is_refused_with_its_size() -> None:
    rows = pa.record_batch({"value": [b"x" * 50]})
    with pytest.raises(KafkaError, match="147 bytes, and 100 are allowed"):
        encode(CompiledEncoder, EncodingRules(topic="a", record_bytes_max=100), [rows])
