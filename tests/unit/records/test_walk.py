"""Records as slices: what is found, what stays of a batch, and what its header says afterwards."""

import pytest

from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import TIMESTAMP_MAX, LeaderEpoch, Offset, ProducerEpoch, ProducerId
from riverlog.records.batch import DELETE_HORIZON, HEADER_BYTES, LOG_APPEND_TIME, Compression, read_header, stamp
from riverlog.records.errors import BadRecords, CorruptBatch
from riverlog.records.record import BatchBuilder, read_batch
from riverlog.records.walk import check_keys, delete_horizon, empty, find_record, keep, unfold, walk

ENTRIES = [(b"a", b"1"), (b"b", None), (b"", b"x" * 300), (b"k" * 200, b"")]


def a_batch(compression: Compression = Compression.NONE, *, keyless: bool = False) -> bytearray:
    builder = BatchBuilder(compression, producer_id=ProducerId(7), producer_epoch=ProducerEpoch(2), base_sequence=40)
    for number, (key, value) in enumerate(ENTRIES):
        builder.append(key, value, {"h": b"v"} if number == 1 else (), timestamp_ms=5_000 - 100 * number)
    if keyless:
        builder.append(None, b"nobody's", timestamp_ms=5_000)
    return builder.build(Offset(100), LeaderEpoch(3))


@pytest.mark.parametrize("compression", Compression)
def test_every_record_is_found(compression: Compression) -> None:
    batch = a_batch(compression)
    header = read_header(batch)
    found = list(walk(unfold(batch, header), header))
    assert [(each.key, each.has_value) for each in found] == [(key, value is not None) for key, value in ENTRIES]
    assert [each.offset_delta for each in found] == [0, 1, 2, 3]
    assert [each.timestamp_delta for each in found] == [0, -100, -200, -300]


@pytest.mark.parametrize("compression", Compression)
@pytest.mark.parametrize("horizon", [None, 9_000])
def test_what_stays_is_what_it_was(compression: Compression, horizon: int | None) -> None:
    batch = a_batch(compression)
    header = read_header(batch)
    data = unfold(batch, header)
    slices = list(walk(data, header))
    smaller = keep(header, data, [slices[1], slices[3]], delete_horizon_ms=horizon)
    before = read_batch(batch)
    assert read_batch(smaller) == [before[1], before[3]]
    after = read_header(smaller)
    assert (after.base_offset, after.last_offset, after.leader_epoch) == (100, 103, 3)
    assert (after.producer_id, after.producer_epoch, after.base_sequence) == (7, 2, 40)
    assert (after.last_sequence, after.compression, after.record_count) == (43, compression, 2)
    assert after.max_timestamp == 4_900
    assert delete_horizon(after) == horizon


def test_a_horizon_stays_when_more_records_go() -> None:
    batch = a_batch()
    header = read_header(batch)
    data = unfold(batch, header)
    batch = keep(header, data, list(walk(data, header)), delete_horizon_ms=9_000)
    header = read_header(batch)
    data = unfold(batch, header)
    smaller = keep(header, data, list(walk(data, header))[1:2])
    assert delete_horizon(read_header(smaller)) == 9_000
    assert [(record.offset, record.timestamp) for record in read_batch(smaller)] == [(101, 4_900)]


def test_the_log_s_own_time_stays() -> None:
    batch = a_batch()
    stamp(memoryview(batch), 77_000)
    header = read_header(batch)
    data = unfold(batch, header)
    smaller = keep(header, data, list(walk(data, header))[1:2], delete_horizon_ms=9_000)
    assert [record.timestamp for record in read_batch(smaller)] == [77_000]
    assert read_header(smaller).attributes & LOG_APPEND_TIME


def test_an_empty_batch_still_tells_offsets_and_sequences() -> None:
    left = empty(read_header(a_batch(Compression.ZSTD)))
    header = read_header(left)
    assert len(left) == HEADER_BYTES
    assert read_batch(left) == []
    assert (header.base_offset, header.last_offset, header.base_sequence, header.last_sequence) == (100, 103, 40, 43)
    assert header.max_timestamp == 5_000
    assert not header.attributes & DELETE_HORIZON


@pytest.mark.parametrize("compression", Compression)
def test_a_record_without_a_key_is_refused(compression: Compression) -> None:
    batch = a_batch(compression)
    check_keys(batch, read_header(batch), batch_bytes_max=1 << 20)
    batch = a_batch(compression, keyless=True)
    with pytest.raises(Refusal, match="4: a compacted topic takes no record without a key") as refused:
        check_keys(batch, read_header(batch), batch_bytes_max=1 << 20)
    assert refused.value.code is ErrorCode.INVALID_RECORD
    assert isinstance(refused.value, BadRecords)
    assert list(refused.value.reasons) == [4]


def test_a_batch_that_unfolds_to_far_more_than_it_may_is_too_large() -> None:
    builder = BatchBuilder(compression=Compression.ZSTD)
    builder.append(b"key", bytes(1 << 20), timestamp_ms=1)
    batch = builder.build()
    check_keys(batch, read_header(batch), batch_bytes_max=1 << 20)
    with pytest.raises(Refusal, match="unfolds to more than 32768 bytes") as refused:
        check_keys(batch, read_header(batch), batch_bytes_max=1 << 10)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_bytes_that_are_no_records_are_corrupt() -> None:
    batch = a_batch()
    header = read_header(batch)
    data = unfold(batch, header)
    for end in range(len(data)):
        with pytest.raises(CorruptBatch):
            list(walk(data[:end], header))
    with pytest.raises(CorruptBatch, match="behind the last record"):
        list(walk(data + b"\0", header))
    for position in range(len(data)):
        garbled = bytearray(data)
        garbled[position] ^= 0x81
        try:
            found = list(walk(bytes(garbled), header))
        except CorruptBatch:
            continue
        assert found[-1].end == len(data)
    with pytest.raises(CorruptBatch, match="counts"):
        unfold(batch, header._replace(record_count=1_000_000))


@pytest.mark.parametrize("horizon", [None, TIMESTAMP_MAX])
def test_a_time_that_leaves_64_bits_stays_what_other_clients_read(horizon: int | None) -> None:
    batch = a_batch()
    header = read_header(batch)._replace(first_timestamp=TIMESTAMP_MAX - 150)
    data = unfold(batch, header)
    first, second, third, fourth = walk(data, header)
    late = first._replace(timestamp_delta=1_000)
    kept = keep(header, data, [late, second, third, fourth], delete_horizon_ms=horizon)
    after = read_header(kept)
    assert after.max_timestamp == TIMESTAMP_MAX - 250, "a wrapped time is the earliest of all"
    assert [record.timestamp for record in read_batch(kept)][1:] == [TIMESTAMP_MAX - 150 - 100 * n for n in (1, 2, 3)]


@pytest.mark.parametrize("compression", Compression)
def test_a_record_is_found_by_time_as_by_walking(compression: Compression) -> None:
    batch = a_batch(compression)
    header = read_header(batch)
    data = unfold(batch, header)
    times = [(each.offset_delta, 5_000 + each.timestamp_delta) for each in walk(data, header)]
    for timestamp_ms in (0, 4_650, 4_700, 4_900, 4_901, 5_000, 5_001):
        for least in range(5):
            wanted = [each for each in times if each[1] >= timestamp_ms and each[0] >= least]
            found = find_record(data, header, timestamp_ms, offset_delta_min=least)
            assert found == (wanted[0] if wanted else None)


def test_looking_for_a_time_refuses_what_is_no_record() -> None:
    batch = a_batch()
    header = read_header(batch)
    data = unfold(batch, header)
    for cut in range(len(data)):
        with pytest.raises(CorruptBatch):
            find_record(data[:cut], header, 2**62, offset_delta_min=0)
