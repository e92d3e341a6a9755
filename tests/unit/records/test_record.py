"""Records taken apart and put together, and every lie a batch can tell."""

from collections.abc import Callable
from struct import pack_into

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from riverlog.records.batch import HEADER_BYTES, Compression, check_produced, checksum, read_header, stamp
from riverlog.records.errors import BatchTooLarge, CorruptBatch
from riverlog.records.record import (
    BatchBuilder,
    ControlType,
    Header,
    Record,
    control_type,
    read_batch,
    read_batches,
    record_bytes_max,
)


def batch_of(*values: bytes, compression: Compression = Compression.NONE, base_offset: int = 0) -> bytearray:
    builder = BatchBuilder(compression)
    for number, value in enumerate(values):
        builder.append(None, value, timestamp_ms=1_000 + number)
    return builder.build(Offset(base_offset))


def resealed(batch: bytearray) -> bytearray:
    """Write a checksum that fits into the batch, so that only what lies behind the checksum is wrong."""
    pack_into(">I", batch, 17, checksum(batch))
    return batch


def with_records(records: bytes, *, count: int, last_offset_delta: int | None = None) -> bytearray:
    batch = batch_of(b"")
    del batch[HEADER_BYTES:]
    batch += records
    pack_into(">i", batch, 8, len(batch) - 12)
    pack_into(">i", batch, 23, count - 1 if last_offset_delta is None else last_offset_delta)
    pack_into(">i", batch, 57, count)
    return resealed(batch)


def test_a_batch_carries_what_was_put_in() -> None:
    builder = BatchBuilder(
        producer_id=ProducerId(77), producer_epoch=ProducerEpoch(3), base_sequence=12, transactional=True
    )
    assert builder.append(b"key", b"value", {"trace": b"\x01", "none": None}, timestamp_ms=5_000) == 0
    assert builder.append(None, None, timestamp_ms=4_000) == 1
    assert builder.append(b"", b"", [("twice", b"1"), ("twice", b"2")], timestamp_ms=9_000) == 2
    assert builder.count == 3
    batch = builder.build(Offset(100), LeaderEpoch(7))
    assert len(batch) == builder.size

    header = check_produced(memoryview(batch), batch_bytes_max=10_000)
    assert (header.base_offset, header.last_offset, header.leader_epoch) == (100, 102, 7)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 3, 12)
    assert (header.first_timestamp, header.max_timestamp) == (5_000, 9_000)
    assert header.is_transactional
    assert not header.is_control
    assert read_batch(batch) == [
        Record(Offset(100), 5_000, b"key", b"value", (Header("trace", b"\x01"), Header("none", None))),
        Record(Offset(101), 4_000, None, None),
        Record(Offset(102), 9_000, b"", b"", (Header("twice", b"1"), Header("twice", b"2"))),
    ]


def test_the_producer_fields_may_come_after_the_records() -> None:
    builder = BatchBuilder()
    builder.append(None, b"x", timestamp_ms=0)
    builder.producer_id, builder.base_sequence = ProducerId(5), 9
    header = read_header(builder.build())
    assert (header.producer_id, header.base_sequence) == (5, 9)


def test_the_brokers_time_counts_where_it_stamped_the_batch() -> None:
    batch = batch_of(b"a", b"b")
    stamp(memoryview(batch), 7_777)
    assert [record.timestamp for record in read_batch(batch)] == [7_777, 7_777]


def test_lengths_and_deltas_of_every_varint_size() -> None:
    builder = BatchBuilder()
    sizes = [0, 63, 64, 8_191, 8_192, 1_048_575, 1_048_576]
    stamps = [0, 63, 64, 8_192, 2**31, 2**40, -(2**40)]
    for size, timestamp in zip(sizes, stamps, strict=True):
        builder.append(bytes(size), None, timestamp_ms=timestamp)
    records = read_batch(builder.build())
    assert [len(record.key or b"") for record in records] == sizes
    assert [record.timestamp for record in records] == stamps


@pytest.mark.parametrize("headers", [{}, {"naïve": b"1", "b": None}, [("x", b"123"), ("x", b"")]])
@pytest.mark.parametrize("size", [0, 1, 200, 70_000])
def test_the_room_a_record_needs_is_never_underestimated(headers: dict[str, bytes | None], size: int) -> None:
    builder = BatchBuilder()
    builder.append(None, None, timestamp_ms=0)
    before = builder.size
    builder.append(bytes(size), bytes(size), headers, timestamp_ms=2**42)
    assert 0 < builder.size - before <= record_bytes_max(bytes(size), bytes(size), headers)


def test_fetched_bytes_are_read_batch_by_batch_without_the_cut_off_end() -> None:
    marker = BatchBuilder(control=True, transactional=True)
    marker.append(b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x00", timestamp_ms=0)
    fetched = batch_of(b"a", b"b") + marker.build(Offset(2)) + batch_of(b"c", base_offset=3) + batch_of(b"d")[:-1]
    found = [(header.is_control, [record.offset for record in records]) for header, records in read_batches(fetched)]
    assert found == [(False, [0, 1]), (True, [2]), (False, [3])]
    assert list(read_batches(b"")) == []


def test_control_records_say_commit_or_abort() -> None:
    assert control_type(Record(Offset(0), 0, b"\x00\x00\x00\x00", None)) is ControlType.ABORT
    assert control_type(Record(Offset(0), 0, b"\x00\x00\x00\x01", None)) is ControlType.COMMIT
    assert control_type(Record(Offset(0), 0, b"\x00\x00\x00\x09", None)) is None
    with pytest.raises(CorruptBatch):
        control_type(Record(Offset(0), 0, b"\x00", None))


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("read", [read_batch, lambda batch: list(read_batches(batch))])
def test_old_formats_are_refused_by_name(magic: int, read: Callable[[bytes], object]) -> None:
    batch = batch_of(b"a")
    batch[16] = magic
    with pytest.raises(CorruptBatch, match=f"format {magic} ") as refused:
        read(batch)
    assert refused.value.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


def test_a_bomb_in_a_batch_is_refused() -> None:
    bomb = batch_of(bytes(1_000_000), compression=Compression.ZSTD)
    with pytest.raises(BatchTooLarge):
        read_batch(bomb, decompressed_bytes_max=100_000)


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        (b"", "too few"),
        (batch_of(b"a")[:40], "too few"),
        (batch_of(b"a") + b"x", "says that it has"),
        (batch_of(b"a")[:-1] + b"\xff", "checksum"),
        (with_records(b"\x0e\0\0\0\x01\x02x\0", count=2), "counts 2 records"),
        (with_records(b"\x0e\0\0\0\x01\x02x\0", count=-1), "counts -1 records"),
        (with_records(b"\x0f\0\0\0\x01\x02x\0", count=1), "longer than its batch"),
        (with_records(b"\x7e\0\0\0\x01\x02x\0", count=1), "longer than its batch"),
        (with_records(b"\x0e\0\0\0\x03\x02x\0", count=1), "length of -2"),
        (with_records(b"\x0e\0\0\0\x01\x05x\0", count=1), "length of -3"),
        (with_records(b"\x0e\0\0\0\x01\x04x\0", count=1), "cut off"),
        (with_records(b"\x0e\0\0\0\x01\x7ex\0", count=1), "cut off"),
        (with_records(b"\x10\0\0\0\x01\x02x\0\0", count=1), "do not fill"),
        (with_records(b"\x0e\0\0\0\x01\x02x\0\0", count=1), "behind the last"),
        (with_records(b"\x0e\0\0\0\x01\x02x\x40", count=1), "counts 32 headers"),
        (with_records(b"\x14\0\0\0\x01\x01\x02\x01\x01\0\0", count=1), "no name"),
        (with_records(b"\x14\0\0\0\x01\x01\x02\x02\xff\x01\0", count=1), "not UTF-8"),
        (with_records(b"\x14\0\0\0\x01\x01\x02\x02a\x03\0", count=1), "length of -2"),
        (with_records(b"\x1e" + b"\xff" * 15, count=1), "more than 64 bits"),
        (with_records(b"\x20\0" + b"\x80" * 9 + b"\x02\0\x01\x02x\0", count=1), "more than 64 bits"),
        (with_records(b"\x0e\0\0\x02\x01\x02x\0", count=1), "beyond the batch's last"),
        (with_records(b"\x0e\0\0\0\x01\x02x\0" * 2, count=2), "follows"),
    ],
)
def test_what_is_wrong_is_said(batch: bytes, reason: str) -> None:
    with pytest.raises(CorruptBatch, match=reason):
        read_batch(batch)
