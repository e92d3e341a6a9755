"""The kernel against the decoder that reads record by record: the same columns of the same bytes, or neither."""

from struct import pack_into
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from riverlog.arrow.columns import TYPES, Cut, schema_of
from riverlog.arrow.decoding import compiled_decoder, plain_decoder
from riverlog.arrow.decoding.decoder import Decode, record_batches
from riverlog.client.consumer.fetched_records import Chunk
from riverlog.client.errors import CorruptRecords
from riverlog.model.ids import Offset, ProducerId, TopicPartition
from riverlog.records.batch import HEADER_BYTES, LOG_APPEND_TIME, Compression, checksum, read_header, stamp
from riverlog.records.record import BatchBuilder
from riverlog.records.walk import empty, keep, unfold, walk
from tests.support.chunks import ABORT, COMMIT, marker

HERE = TopicPartition("orders", 3)
ALL = schema_of(TYPES)

CONTENT = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=6), CONTENT), max_size=3)
TIMESTAMPS = st.integers(-1, 2**41) | st.sampled_from([-(2**61), 2**61, 2**63 // 1_000, 2**63 // 1_000 + 1])
RECORDS = st.lists(st.tuples(TIMESTAMPS, CONTENT, CONTENT, HEADERS), min_size=1, max_size=20)


class Fetched(NamedTuple):
    """What a fetch may have brought."""

    data: bytes
    aborted: list[tuple[Offset, ProducerId]]
    end: int


@st.composite
def fetched(draw: st.DrawFn) -> Fetched:
    """Make batches of several producers, some compacted, some of transactions with markers of both kinds."""
    data, aborted, offset = bytearray(), [], draw(st.integers(0, 2**40))
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["plain", "plain", "stamped", "compacted", "emptied", "transaction"]))
        producer = ProducerId(draw(st.integers(1, 3)) if kind == "transaction" else -1)
        builder = BatchBuilder(
            draw(st.sampled_from(list(Compression))), producer_id=producer, transactional=kind == "transaction"
        )
        for timestamp_ms, key, value, headers in draw(RECORDS):
            builder.append(key, value, headers, timestamp_ms=timestamp_ms)
        batch = builder.build(Offset(offset))
        header = read_header(batch)
        match kind:
            case "stamped":
                stamp(memoryview(batch), 77)
                assert read_header(batch).attributes & LOG_APPEND_TIME
            case "compacted":
                content = unfold(batch, header)
                batch = keep(header, content, list(walk(content, header))[::2])
            case "emptied":
                batch = empty(header)
            case _:
                pass
        data += batch
        offset = header.next_offset
        if kind == "transaction":
            is_aborted = draw(st.booleans())
            if is_aborted:
                aborted.append((header.base_offset, producer))
            data += marker(offset, ABORT if is_aborted else COMMIT, producer)
            offset += 1
        offset += draw(st.sampled_from([0, 0, 5]))
    return Fetched(bytes(data), aborted, offset)


def decoded(decode: Decode, found: Fetched, schema: pa.Schema, cut: Cut, *, committed: bool = True) -> pa.Table:
    chunk = Chunk(found.data, found.aborted, read_committed=committed)
    batches = list(record_batches(decode, chunk, HERE, schema, cut, portion_bytes=500))
    for batch in batches:
        batch.validate(full=True)
        assert batch.num_rows > 0
    return pa.Table.from_batches(batches, schema)


def cuts(end: int) -> st.SearchStrategy[Cut]:
    near = st.integers(max(0, end - 60), end + 5).map(Offset)
    oldest = st.sampled_from([-(2**63), 0, 2**40])
    return st.builds(Cut, near | st.just(Offset(0)), near | st.just(Offset(2**62)), oldest)


@given(st.data(), fetched(), st.lists(st.sampled_from(list(TYPES)), min_size=1, unique=True), st.booleans())
@hypothesis_settings(max_examples=150, deadline=None)
def test_the_kernel_reads_what_the_plain_decoder_reads(
    data: st.DataObject, found: Fetched, columns: list[str], committed: bool
) -> None:
    cut, schema = data.draw(cuts(found.end)), schema_of(columns)
    expected = decoded(plain_decoder.record_batch, found, schema, cut, committed=committed)
    assert decoded(compiled_decoder.record_batch, found, schema, cut, committed=committed).equals(expected)


@given(fetched(), st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
@hypothesis_settings(max_examples=300, deadline=None)
def test_changed_bytes_are_refused_by_both_or_read_alike(found: Fetched, changes: list[tuple[int, int]]) -> None:
    data = bytearray(found.data[: read_header(found.data).size])
    for place, byte in changes:
        data[21 + place % (len(data) - 21)] = byte
    pack_into(">I", data, 17, checksum(data))
    assert_alike(found._replace(data=bytes(data)))


@given(fetched(), st.integers(1, 200), st.integers(0, 30))
@hypothesis_settings(max_examples=100, deadline=None)
def test_cut_records_are_refused_by_both_or_read_alike(found: Fetched, fewer: int, more: int) -> None:
    header = read_header(found.data)
    content = unfold(found.data[: header.size], header)
    content = content[: max(0, len(content) - fewer)] if more == 0 else content + bytes(more)
    data = bytearray(found.data[:HEADER_BYTES]) + content
    pack_into(">i", data, 8, len(data) - 12)
    pack_into(">h", data, 21, header.attributes & ~7)
    pack_into(">I", data, 17, checksum(data))
    assert_alike(found._replace(data=bytes(data)))


@pytest.mark.parametrize("place", range(40))
def test_every_length_is_bounded(place: int) -> None:
    builder = BatchBuilder()
    builder.append(b"key", b"value", {"name": b"content", "other": None}, timestamp_ms=5)
    builder.append(None, b"", timestamp_ms=6)
    batch = builder.build()
    for byte in (0x00, 0x01, 0x02, 0x03, 0x7F, 0x80, 0xFE, 0xFF):
        data = bytearray(batch)
        data[HEADER_BYTES + place % (len(data) - HEADER_BYTES)] = byte
        pack_into(">I", data, 17, checksum(data))
        assert_alike(Fetched(bytes(data), [], 2))


def assert_alike(found: Fetched) -> None:
    """Read all columns, and compare what came of it."""
    whole = Cut(Offset(0), Offset(2**63 - 1))
    outcomes = []
    for decode in (plain_decoder.record_batch, compiled_decoder.record_batch):
        try:
            outcomes.append(decoded(decode, found, ALL, whole))
        except CorruptRecords as problem:
            outcomes.append((problem.code, problem.offset))
    expected, outcome = outcomes
    assert outcome.equals(expected) if isinstance(expected, pa.Table) else outcome == expected
