"""Batch headers: each refusal of a produced batch, and the fields that the broker patches in place."""

from collections.abc import Callable
from struct import pack_into

import pytest

from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from riverlog.records.batch import (
    HEADER_BYTES,
    Compression,
    TimestampType,
    assign,
    check_produced,
    checksum,
    headers,
    read_header,
    set_producer,
    stamp,
)
from riverlog.records.record import BatchBuilder


def batch_of(count: int, compression: Compression = Compression.NONE) -> bytearray:
    builder = BatchBuilder(
        compression, producer_id=ProducerId(9), producer_epoch=ProducerEpoch(0), base_sequence=0x7FFF_FFFE
    )
    for number in range(count):
        builder.append(None, b"value", timestamp_ms=number)
    return builder.build()


def field(layout: str, position: int, value: int) -> Callable[[bytearray], None]:
    """Overwrite one field and make the checksum fit again."""

    def change(batch: bytearray) -> None:
        pack_into(layout, batch, position, value)
        if position >= 21:
            pack_into(">I", batch, 17, checksum(batch))

    return change


def test_a_good_batch_gives_its_header() -> None:
    batch = batch_of(3)
    header = check_produced(memoryview(batch), batch_bytes_max=len(batch))
    assert header == read_header(batch)
    assert header.size == len(batch)
    assert (header.record_count, header.last_offset, header.next_offset) == (3, 2, 3)
    assert header.timestamp_type is TimestampType.CREATE_TIME
    assert header.last_sequence == 0, "sequences wrap to 0 behind 2^31 - 1"


@pytest.mark.parametrize(
    ("change", "code", "reason"),
    [
        (field("b", 16, 0), ErrorCode.INVALID_RECORD, "format 0 is not supported"),
        (field("b", 16, 1), ErrorCode.INVALID_RECORD, "format 1 is not supported"),
        (field("b", 16, 3), ErrorCode.CORRUPT_MESSAGE, "format 3 does not exist"),
        (field(">i", 8, 10_000), ErrorCode.INVALID_RECORD, "says that it has 10012 bytes"),
        (field(">i", 8, -1), ErrorCode.INVALID_RECORD, "says that it has 11 bytes"),
        (field(">I", 17, 0), ErrorCode.CORRUPT_MESSAGE, "checksum"),
        (field(">i", 23, 5), ErrorCode.INVALID_RECORD, "last offset delta is 5"),
        (field(">i", 57, 0), ErrorCode.INVALID_RECORD, "counts 0 records"),
        (field(">h", 21, 0x20), ErrorCode.INVALID_RECORD, "control batches"),
        (field(">i", 53, -1), ErrorCode.INVALID_RECORD, "sequence -1 and epoch 0"),
        (field(">h", 51, -1), ErrorCode.INVALID_RECORD, "epoch -1"),
        (field(">h", 21, 5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "codec 5"),
        (lambda batch: batch.extend(batch_of(1)), ErrorCode.INVALID_RECORD, "more than one record batch"),
        (lambda batch: batch.__delitem__(slice(10, None)), ErrorCode.INVALID_RECORD, "10 bytes are too few"),
        (lambda batch: batch.__delitem__(slice(60, None)), ErrorCode.INVALID_RECORD, "60 bytes are too few"),
        (lambda batch: batch.clear(), ErrorCode.INVALID_RECORD, "0 bytes are too few"),
    ],
)
def test_each_refusal_has_its_code_and_sentence(
    change: Callable[[bytearray], None], code: ErrorCode, reason: str
) -> None:
    batch = batch_of(3)
    change(batch)
    with pytest.raises(Refusal, match=reason) as refused:
        check_produced(memoryview(batch), batch_bytes_max=1_000_000)
    assert refused.value.code is code


def test_a_batch_of_a_transaction_needs_a_producer() -> None:
    builder = BatchBuilder(transactional=True)
    builder.append(None, b"value", timestamp_ms=0)
    with pytest.raises(Refusal, match="names no producer") as refused:
        check_produced(memoryview(builder.build()), batch_bytes_max=1_000_000)
    assert refused.value.code is ErrorCode.INVALID_RECORD


def test_a_count_that_cannot_fit_is_refused_without_decoding() -> None:
    batch = batch_of(1)
    field(">i", 23, 999)(batch)
    field(">i", 57, 1_000)(batch)
    with pytest.raises(Refusal, match="more than fit") as refused:
        check_produced(memoryview(batch), batch_bytes_max=1_000_000)
    assert refused.value.code is ErrorCode.INVALID_RECORD


def test_a_batch_beyond_the_limit_is_refused() -> None:
    batch = batch_of(10)
    with pytest.raises(Refusal, match=r"max\.message\.bytes") as refused:
        check_produced(memoryview(batch), batch_bytes_max=len(batch) - 1)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("compression", Compression)
def test_offset_and_epoch_are_assigned_without_a_new_checksum(compression: Compression) -> None:
    batch = batch_of(4, compression)
    before = read_header(batch)
    assign(memoryview(batch), Offset(2**40), LeaderEpoch(6))
    header = check_produced(memoryview(batch), batch_bytes_max=len(batch))
    assert header == before._replace(base_offset=Offset(2**40), leader_epoch=LeaderEpoch(6))


def test_the_brokers_time_keeps_the_checksum_right() -> None:
    batch = batch_of(4, Compression.LZ4)
    stamp(memoryview(batch), 123_456)
    header = check_produced(memoryview(batch), batch_bytes_max=len(batch))
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert (header.max_timestamp, header.compression) == (123_456, Compression.LZ4)


def test_the_producer_is_written_into_a_finished_batch() -> None:
    batch = batch_of(4, Compression.ZSTD)
    before = read_header(batch)
    set_producer(memoryview(batch), ProducerId(2**40), ProducerEpoch(12), 77)
    header = check_produced(memoryview(batch), batch_bytes_max=len(batch))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (2**40, 12, 77)
    assert header[-1:] + header[:4] + header[5:9] == before[-1:] + before[:4] + before[5:9]


def test_walking_stops_before_what_is_not_whole() -> None:
    first, second = batch_of(1), batch_of(2)
    both = first + second
    assert [(position, header.record_count) for position, header in headers(both)] == [(0, 1), (len(first), 2)]
    assert len(list(headers(both[:-1]))) == 1
    assert list(headers(both[: HEADER_BYTES - 1])) == []
    assert list(headers(bytes(200))) == [], "a run of zeros is no batch"


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD])
def test_a_compressed_batch_cannot_count_more_records_than_its_bytes_unfold_to(codec: Compression) -> None:
    batch = batch_of(3, codec)
    for position, value in ((23, 0x7FFF_FFFE), (57, 0x7FFF_FFFF)):
        field(">i", position, value)(batch)
    with pytest.raises(Refusal, match="more than fit into") as refused:
        check_produced(memoryview(batch), batch_bytes_max=len(batch))
    assert refused.value.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", list(Compression))
def test_the_densest_batch_of_each_codec_is_taken(codec: Compression) -> None:
    builder = BatchBuilder(codec)
    for _ in range(100_000):
        builder.append(None, None, timestamp_ms=0)
    batch = builder.build()
    assert check_produced(memoryview(batch), batch_bytes_max=len(batch)).record_count == 100_000
