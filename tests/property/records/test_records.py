"""Our batches against an independent writer and reader, and against mutation."""

from struct import pack_into

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from riverlog.records.batch import HEADER_BYTES, Compression, checksum
from riverlog.records.errors import CorruptBatch
from riverlog.records.record import BatchBuilder, read_batch, read_batches

CONTENT = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=8), CONTENT), max_size=4)
RECORDS = st.lists(st.tuples(st.integers(0, 2**41), CONTENT, CONTENT, HEADERS), min_size=1, max_size=30)
CODECS = st.sampled_from(list(Compression))

Fields = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def written_by_us(records: list[Fields], codec: Compression) -> bytearray:
    builder = BatchBuilder(codec)
    for timestamp, key, value, headers in records:
        builder.append(key, value, headers, timestamp_ms=timestamp)
    return builder.build()


@given(RECORDS, CODECS)
@hypothesis_settings(max_examples=60, deadline=None)
def test_another_reader_reads_what_we_write(records: list[Fields], codec: Compression) -> None:
    batch = DefaultRecordBatch(bytes(written_by_us(records, codec)))
    assert batch.validate_crc()
    found = [(record.timestamp, record.key, record.value, list(record.headers)) for record in batch]
    assert found == records


@given(RECORDS, CODECS)
@hypothesis_settings(max_examples=60, deadline=None)
def test_we_read_what_another_writer_writes(records: list[Fields], codec: Compression) -> None:
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 10_000_000)
    for number, (timestamp, key, value, headers) in enumerate(records):
        assert builder.append(number, timestamp, key, value, headers) is not None
    found = read_batch(builder.build())
    assert [(one.timestamp, one.key, one.value, [tuple(pair) for pair in one.headers]) for one in found] == records
    assert [one.offset for one in found] == list(range(len(records)))


@given(RECORDS, CODECS, st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
@hypothesis_settings(max_examples=250, deadline=None)
def test_mutated_bytes_are_read_or_corrupt_and_nothing_else(
    records: list[Fields], codec: Compression, changes: list[tuple[int, int]]
) -> None:
    batch = written_by_us(records, codec)
    for place, byte in changes:
        batch[17 + place % (len(batch) - 17)] = byte  # behind magic, so that most mutants reach the records
    pack_into(">I", batch, 17, checksum(batch))
    try:
        read_batch(batch, decompressed_bytes_max=10_000_000)
    except CorruptBatch:
        pass


@given(st.binary(max_size=300))
@hypothesis_settings(max_examples=100, deadline=None)
def test_any_bytes_are_batches_or_corrupt(garbage: bytes) -> None:
    try:
        list(read_batches(garbage))
    except CorruptBatch:
        pass


@pytest.mark.parametrize("codec", Compression)
def test_every_truncation_is_noticed(codec: Compression) -> None:
    batch = written_by_us([(0, b"key", b"value", [("h", b"1")])], codec)
    for length in range(HEADER_BYTES - 1, len(batch)):
        with pytest.raises(CorruptBatch):
            read_batch(batch[:length])
