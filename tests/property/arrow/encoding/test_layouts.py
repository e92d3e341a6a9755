"""Rows are the same records in whichever of Arrow's layouts they come, by the kernel and without it."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from riverlog.arrow.columns import TYPES, Cut, schema_of
from riverlog.arrow.decoding import compiled_decoder
from riverlog.arrow.decoding.decoder import record_batches
from riverlog.arrow.encoding.compiled_encoder import CompiledEncoder
from riverlog.arrow.encoding.plain_encoder import PlainEncoder
from riverlog.arrow.encoding.rows import EncodingRules, TopicIndex, rows_of
from riverlog.client.consumer.fetched_records import Chunk
from riverlog.client.producer.deliveries import EncodedBatch
from riverlog.model.ids import Offset
from tests.support import layouts

RULES = EncodingRules(batch_bytes_max=600)
WHOLE = Cut(Offset(0), Offset(2**63 - 1))


def encoded(kind: Any, frames: list[pa.RecordBatch]) -> list[EncodedBatch]:
    topics = TopicIndex(layouts.PARTITIONS.__getitem__)
    encoder = kind(RULES, topics)
    for frame in frames:
        encoder.add(rows_of(frame, RULES, topics, now_ms=0))
    batches: list[EncodedBatch] = encoder.batches()
    return batches


def written(batches: list[EncodedBatch]) -> list[tuple[Any, int, bytes]]:
    return [(batch.partition, batch.count, bytes(batch.content)) for batch in batches]


@given(st.data(), st.lists(st.integers(0, 9), min_size=1, max_size=3))
@hypothesis_settings(max_examples=300, deadline=None)
def test_a_layout_changes_no_byte(data: st.DataObject, counts: list[int]) -> None:
    def choose(below: int) -> int:
        return data.draw(st.integers(0, below - 1))

    cells = [layouts.rows(choose, count) for count in counts]
    frames = [layouts.wild(choose, each) for each in cells]
    expected = written(encoded(PlainEncoder, [layouts.canonical(each) for each in cells]))
    assert written(encoded(PlainEncoder, frames)) == expected
    batches = encoded(CompiledEncoder, frames)
    assert written(batches) == expected
    read = [row for batch in batches for row in scanned(batch)]
    wanted = [
        {"key": None} | row | {"headers": row.get("headers") or None}
        for each in cells
        for row in layouts.canonical(each).drop_columns(["partition"] if "partition" in each else []).to_pylist()
    ]
    assert sorted(map(str, map(_by_name, read))) == sorted(map(str, map(_by_name, wanted)))


def scanned(batch: EncodedBatch) -> list[dict[str, Any]]:
    """Read a batch as a scan does."""
    chunk = Chunk(bytes(batch.content), [], read_committed=True)
    found = record_batches(compiled_decoder.record_batch, chunk, batch.partition, schema_of(TYPES), WHOLE)
    return [row for each in found for row in each.select(["key", "value", "topic", "timestamp", "headers"]).to_pylist()]


def _by_name(row: dict[str, Any]) -> list[tuple[str, Any]]:
    moment = row["timestamp"]
    return sorted({**row, "timestamp": moment.replace(microsecond=moment.microsecond // 1_000 * 1_000)}.items())
