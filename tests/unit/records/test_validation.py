"""Records checked one by one: what a topic with `record.validation=full` refuses, and what it puts right."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.topic_config import DEFAULT_TOPIC_CONFIG
from riverlog.records.batch import HEADER, HEADER_BYTES, BatchHeader, Compression, check_produced, checksum, read_header
from riverlog.records.record import BatchBuilder, read_batch, write_header
from riverlog.records.validation import check_records
from riverlog.records.varint import VARINTS

NOW = 1_700_000_000_000


def batch_of(*timestamps: int, compression: Compression = Compression.NONE) -> bytearray:
    builder = BatchBuilder(compression)
    for timestamp_ms in timestamps:
        builder.append(b"key", b"value", timestamp_ms=timestamp_ms)
    return builder.build()


def framed(content: bytes, *, count: int, first: int = NOW, last: int = NOW) -> bytearray:
    """Put any bytes behind a right header."""
    batch = bytearray(HEADER_BYTES) + content
    write_header(batch, attributes=0, count=count, first_timestamp=first, max_timestamp=last)
    return batch


def record(offset_delta: int, *, timestamp_delta: int = 0) -> bytes:
    body = b"\x00" + VARINTS[timestamp_delta] + VARINTS[offset_delta] + b"\x01\x01\x00"
    return VARINTS[len(body)] + body


def check(batch: bytearray, **changes: object) -> BatchHeader:
    config = replace(DEFAULT_TOPIC_CONFIG, **changes)  # type: ignore[arg-type]
    header = check_produced(memoryview(batch), batch_bytes_max=len(batch))
    return check_records(memoryview(batch), header, config, now_ms=NOW)


@pytest.mark.parametrize("codec", list(Compression))
def test_a_good_batch_passes_and_is_left_as_it_is(codec: Compression) -> None:
    batch = batch_of(NOW, NOW - 5, NOW + 5, compression=codec)
    before = bytes(batch)
    assert check(batch).max_timestamp == NOW + 5
    assert batch == before


@pytest.mark.parametrize(
    ("content", "count", "reason"),
    [
        (b"\xff" * 40, 3, "cannot be read"),
        (bytes(40), 3, "cannot be read"),
        (record(0) + record(0), 2, "offset delta 0 follows 0"),
        (record(1) + record(2), 2, "beyond the batch's last"),
        (record(0) + record(1) + b"more", 2, "stand behind the last record"),
        (record(0, timestamp_delta=2**63 - 1), 1, "does not fit into 64 bits"),
    ],
)
def test_what_a_reader_would_stick_at_is_refused(content: bytes, count: int, reason: str) -> None:
    with pytest.raises(Refusal, match=reason) as refused:
        check(framed(content, count=count))
    assert refused.value.code is ErrorCode.INVALID_RECORD


def test_compressed_garbage_is_refused() -> None:
    batch = batch_of(NOW, compression=Compression.ZSTD)
    batch[HEADER_BYTES:] = b"\x00" * (len(batch) - HEADER_BYTES)
    batch[17:21] = checksum(batch).to_bytes(4, "big")
    with pytest.raises(Refusal, match="not zstd"):
        check(batch)


def test_a_bomb_is_not_unfolded() -> None:
    builder = BatchBuilder(Compression.ZSTD)
    builder.append(None, bytes(2_000_000), timestamp_ms=NOW)
    with pytest.raises(Refusal) as refused:
        check(builder.build(), max_message_bytes=10_000)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("timestamps", [(NOW, NOW - 10), (NOW - 10, NOW)])
def test_no_record_may_be_older_than_the_topic_allows(timestamps: Sequence[int]) -> None:
    with pytest.raises(Refusal, match="10 ms old") as refused:
        check(batch_of(*timestamps), message_timestamp_before_max_ms=9)
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
    check(batch_of(*timestamps), message_timestamp_before_max_ms=9, message_timestamp_log_append_time=True)


def test_a_wrong_largest_timestamp_is_put_right() -> None:
    batch = framed(record(0, timestamp_delta=7) + record(1), count=2)
    assert check(batch).max_timestamp == NOW + 7
    assert [found.timestamp for found in read_batch(batch)] == [NOW + 7, NOW], "the checksum fits again"


def test_a_last_timestamp_before_the_first_is_put_right_whatever_the_topic_asks_for() -> None:
    batch = batch_of(NOW, NOW - 5, NOW + 5)
    HEADER.pack_into(batch, 0, *read_header(batch)._replace(max_timestamp=-1))
    batch[17:21] = checksum(batch).to_bytes(4, "big")
    header = check_produced(memoryview(batch), batch_bytes_max=len(batch))
    assert header == read_header(batch)
    assert header.max_timestamp == NOW + 5
    assert header.crc == checksum(batch)
