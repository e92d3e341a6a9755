"""The kernel against the encoder that builds record by record: the same batches, byte for byte, or the same refusal."""

from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from riverlog.arrow.columns import HEADERS_TYPE, TIMESTAMP_TYPE
from riverlog.arrow.encoding.compiled_encoder import CompiledEncoder
from riverlog.arrow.encoding.plain_encoder import PlainEncoder
from riverlog.arrow.encoding.rows import EncodingRules, TopicIndex, rows_of
from riverlog.client.errors import KafkaError
from riverlog.client.producer.partitioner import murmur2
from riverlog.records.batch import Compression
from riverlog.records.record import Record, read_batch

PARTITIONS = {"a": 1, "b": 3, "c": 7}
NOW_MS = 1_700_000_000_123

CONTENT = st.none() | st.binary(max_size=40) | st.sampled_from([b"", b"x" * 127, b"y" * 9_000])
NAMES = st.text(max_size=5)
HEADERS = st.none() | st.lists(st.fixed_dictionaries({"key": NAMES, "value": CONTENT}), max_size=3)
MICROSECONDS = st.none() | st.integers(-(2**40), 2**52) | st.sampled_from([0, -1, 2**61])


class Given(NamedTuple):
    """Frames of rows, and how they are to be encoded."""

    frames: list[pa.RecordBatch]
    rules: EncodingRules


def frame(draw: st.DrawFn, columns: list[str], *, is_wild: bool) -> pa.RecordBatch:
    """Make rows, perhaps a slice out of more: then no buffer begins where its array does."""
    count, skipped = draw(st.integers(0, 12)), draw(st.sampled_from([0, 0, 1, 9]))
    partitions = st.none() | (st.integers(-1, 8) if is_wild else st.just(0))
    cells: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
        "value": (draw(st.sampled_from([pa.binary(), pa.large_binary()])), CONTENT),
        "key": (pa.binary(), CONTENT),
        "topic": (pa.string(), st.sampled_from(list(PARTITIONS))),
        "partition": (pa.int32(), partitions),
        "timestamp": (TIMESTAMP_TYPE, MICROSECONDS),
        "headers": (HEADERS_TYPE, HEADERS),
    }
    arrays = {
        name: pa.array([draw(cells[name][1]) for _ in range(count + skipped)], cells[name][0])
        for name in ["value", *columns]
    }
    return pa.record_batch(arrays).slice(skipped)


@st.composite
def given_rows(draw: st.DrawFn, *, is_wild: bool = False) -> Given:
    has_topic = draw(st.booleans())
    columns = draw(st.lists(st.sampled_from(["key", "partition", "timestamp", "headers"]), unique=True))
    rules = EncodingRules(
        topic=None if has_topic else "b",
        batch_bytes_max=draw(st.sampled_from([100, 300, 2_000, 1_000_000])),
        record_bytes_max=draw(st.sampled_from([150, 10_000])) if is_wild else 1_000_000,
        compression=draw(st.sampled_from(list(Compression))),
        transactional=draw(st.booleans()),
        first_partition=draw(st.integers(0, 5)),
    )
    columns += ["topic"] if has_topic else []
    frames = [frame(draw, columns, is_wild=is_wild) for _ in range(draw(st.integers(1, 4)))]
    return Given(frames, rules)


def encoded(kind: Any, rows: Given) -> list[tuple[tuple[str, int], int, bytes]] | tuple[Any, str]:
    """Encode two frames at a time; give the batches, or what is said against them."""
    topics = TopicIndex(PARTITIONS.__getitem__)
    encoder, batches = kind(rows.rules, topics), []
    try:
        for number, each in enumerate(rows.frames):
            encoder.add(rows_of(each, rows.rules, topics, now_ms=NOW_MS))
            if number % 2:
                batches += encoder.batches()
        batches += encoder.batches()
    except KafkaError as problem:
        return problem.code, problem.message
    return [(batch.partition, batch.count, bytes(batch.content)) for batch in batches]


@given(given_rows())
@hypothesis_settings(max_examples=200, deadline=None)
def test_the_kernel_writes_what_the_plain_encoder_writes(rows: Given) -> None:
    assert encoded(CompiledEncoder, rows) == encoded(PlainEncoder, rows)


@given(given_rows(is_wild=True))
@hypothesis_settings(max_examples=100, deadline=None)
def test_what_no_record_can_be_made_of_is_refused_by_both_with_the_same_words(rows: Given) -> None:
    assert encoded(CompiledEncoder, rows) == encoded(PlainEncoder, rows)


@given(given_rows())
@hypothesis_settings(max_examples=100, deadline=None)
def test_every_row_becomes_one_record_where_its_key_belongs(rows: Given) -> None:
    batches = encoded(CompiledEncoder, rows)
    assert isinstance(batches, list)
    written: list[tuple[str, int, Record]] = []
    for (topic, partition), count, content in batches:
        records = read_batch(content)
        assert len(records) == count
        written += [(topic, partition, record) for record in records]
    for topic, partition, record in written:
        if record.key is not None and "partition" not in rows.frames[0].schema.names:
            assert partition == (murmur2(record.key) & 0x7FFF_FFFF) % PARTITIONS[topic]
    expected = [
        (rows.rules.topic or row["topic"], row.get("key"), row["value"], row.get("headers") or [])
        for each in rows.frames
        for row in each.select([name for name in each.schema.names if name != "timestamp"]).to_pylist()
    ]
    found = [
        (topic, record.key, record.value, [header._asdict() for header in record.headers])
        for topic, _, record in written
    ]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
