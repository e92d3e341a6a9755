"""The log as its callers see it: append, read, seek, roll."""

import errno
from dataclasses import replace

import pytest

from riverlog.log.log import Log
from riverlog.log.segments.gathered_write import AppendResult
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_TIMESTAMP, LeaderEpoch, Offset
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from tests.support.batches import records_of
from tests.support.disk import MemoryDisk
from tests.unit.log.logs import FOLDER, NOW, SMALL, append, filled, gather, open_log, read_all


def test_appending_gives_offsets_that_grow_by_the_number_of_records(log: Log) -> None:
    assert append(log, b"a", b"b") == AppendResult(Offset(0), Offset(1), NO_TIMESTAMP, False)
    assert append(log, b"c") == AppendResult(Offset(2), Offset(2), NO_TIMESTAMP, False)
    assert log.log_end_offset == 3
    assert read_all(log) == [(0, b"a"), (1, b"b"), (2, b"c")]


@pytest.mark.parametrize("bytes_max", [1, 100, 250, 1 << 20])
def test_reading_from_any_offset_gives_all_that_follows(log: Log, bytes_max: int) -> None:
    written = filled(log)
    assert len(log.segments) > 3
    for offset in range(len(written)):
        assert read_all(log, offset, bytes_max) == written[offset:]


def test_a_read_stays_within_its_limits(log: Log) -> None:
    filled(log)
    for upto in range(0, log.log_end_offset + 1, 2):
        for offset in range(0, upto, 7):
            for bytes_max in (1, 120, 400):
                found = log.read(Offset(offset), bytes_max=bytes_max, upto=Offset(upto))
                records = records_of(found.records)
                assert records[-1].offset < upto
                assert found.size <= max(bytes_max, 100)
                found = log.read(Offset(offset), bytes_max=bytes_max, upto=Offset(upto), at_least_one=False)
                assert found.size <= bytes_max
        assert log.read(Offset(upto), bytes_max=1 << 20, upto=Offset(upto)).records is None


@pytest.mark.parametrize("offset", [-1, 4, 9])
def test_an_offset_outside_the_log_is_out_of_range(log: Log, offset: int) -> None:
    append(log, b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h")
    log.advance_log_start(Offset(5))
    with pytest.raises(Refusal) as refused:
        log.read(Offset(offset), bytes_max=100, upto=log.log_end_offset)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_time_finds_the_first_record_as_late_as_it(log: Log) -> None:
    filled(log)
    times = {record: 1_000 + 20 * (record // 2) + record % 2 for record in range(log.log_end_offset)}
    for wanted in range(990, max(times.values()) + 3):
        expected = next((offset for offset, time in times.items() if time >= wanted), None)
        found = log.offset_for_time(wanted)
        assert (found.offset if found else None) == expected
        assert found is None or found.timestamp_ms == times[found.offset]


def test_times_that_go_back_are_found_too(log: Log) -> None:
    times = [500, 100, 900, 200, 900, 50, 950, 10, 20, 30] * 6
    for time in times:
        append(log, b"some more bytes", timestamp_ms=time)
    for wanted in range(0, 1_000, 5):
        expected = next((offset for offset, time in enumerate(times) if time >= wanted), None)
        found = log.offset_for_time(wanted)
        assert (found.offset if found else None) == expected
    latest = log.max_timestamp()
    assert latest is not None
    assert latest[:2] == (6, 950)


def test_log_append_time_is_the_brokers(disk: MemoryDisk) -> None:
    log = open_log(disk, replace(SMALL, message_timestamp_log_append_time=True))
    assert append(log, b"a", b"b", timestamp_ms=5, now_ms=77).log_append_time_ms == 77
    records = records_of(log.read(Offset(0), bytes_max=1_000, upto=Offset(2)).records)
    assert [record.timestamp for record in records] == [77, 77]
    assert log.offset_for_time(77) == (0, 77, 0)


def test_times_out_of_bounds_are_refused(disk: MemoryDisk) -> None:
    config = replace(SMALL, message_timestamp_after_max_ms=100, message_timestamp_before_max_ms=1_000)
    log = open_log(disk, config)
    append(log, timestamp_ms=NOW + 100)
    append(log, timestamp_ms=NOW - 1_000)
    append(log, timestamp_ms=NO_TIMESTAMP)
    for timestamp_ms in (NOW + 101, NOW - 1_001):
        with pytest.raises(Refusal) as refused:
            append(log, timestamp_ms=timestamp_ms)
        assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
    assert log.log_end_offset == 3


def test_a_batch_larger_than_a_segment_is_refused(log: Log) -> None:
    with pytest.raises(Refusal) as refused:
        append(log, bytes(1_001))
    assert refused.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.log_end_offset == 0


def test_a_segment_is_rolled_by_the_time_of_its_records(disk: MemoryDisk) -> None:
    log = open_log(disk, replace(DEFAULT_TOPIC_CONFIG, segment_ms=1_000))
    for timestamp_ms in (100, 1_100, 1_101, 1_102, 2_101):
        append(log, timestamp_ms=timestamp_ms)
    assert len(log.segments) == 2
    assert [name for name in disk.list(FOLDER) if name.endswith(".log")] == [f"{0:020d}.log", f"{2:020d}.log"]


def test_a_repeated_batch_is_answered_with_where_it_lies(log: Log) -> None:
    first = append(log, b"a", b"b", producer_id=7, producer_epoch=0, base_sequence=0)
    append(log, b"c", producer_id=7, producer_epoch=0, base_sequence=2)
    again = append(log, b"a", b"b", producer_id=7, producer_epoch=0, base_sequence=0)
    assert again == replace(first, duplicate=True)
    assert log.log_end_offset == 3


def test_followers_append_what_they_are_given(log: Log) -> None:
    filled(log, batches=5)
    found = log.read(Offset(2), bytes_max=1 << 20, upto=log.log_end_offset).records
    assert found is not None
    follower = Log.open(
        MemoryDisk(), FOLDER, SMALL, recovery_point=Offset(0), log_start_offset=Offset(2), clean=False, now_ms=NOW
    )
    data = memoryview(found.file.read(found.position, found.size))
    assert follower.append_assigned(data[:-1], now_ms=NOW) == 8
    with pytest.raises(Refusal):
        follower.append_assigned(data, now_ms=NOW)
    assert read_all(follower, 2) == read_all(log, 2)[:6]


def test_epochs_say_where_each_leader_ended(log: Log) -> None:
    append(log, b"a", epoch=1)
    append(log, b"b", epoch=1)
    append(log, b"c", epoch=4)
    assert log.epochs.end_of(LeaderEpoch(0), log.log_end_offset) == (0, 0)
    assert log.epochs.end_of(LeaderEpoch(1), log.log_end_offset) == (1, 2)
    assert log.epochs.end_of(LeaderEpoch(3), log.log_end_offset) == (1, 2)
    assert log.epochs.end_of(LeaderEpoch(4), log.log_end_offset) == (4, 3)
    assert log.epochs.end_of(LeaderEpoch(5), log.log_end_offset) == (-1, -1)


def test_gathered_batches_have_offsets_and_are_written_with_one_call(disk: MemoryDisk, log: Log) -> None:
    append(log, b"first")
    steps = disk.steps
    assert [gather(log, b"%d" % number).base_offset for number in range(5)] == [1, 2, 3, 4, 5]
    assert (disk.steps - steps, log.log_end_offset) == (0, 1)
    log.write()
    assert (disk.steps - steps, log.log_end_offset) == (1, 6)
    assert [value for _, value in read_all(log)] == [b"first", b"0", b"1", b"2", b"3", b"4"]


def test_gathering_goes_on_over_the_end_of_a_segment_and_the_beginning_of_an_epoch(disk: MemoryDisk, log: Log) -> None:
    for number in range(60):
        assert gather(log, b"value %d" % number, epoch=number // 20).base_offset == number
    log.write()
    assert len(log.segments) > 3
    assert [log.epochs.end_of(LeaderEpoch(epoch), log.log_end_offset).end_offset for epoch in range(3)] == [20, 40, 60]
    assert len(read_all(log)) == 60
    disk.kill()
    assert len(read_all(open_log(disk))) == 60


@pytest.mark.parametrize("seed", range(20))
def test_a_failed_gathered_write_leaves_nothing_behind(seed: int) -> None:
    """However much of it reached the file: others get its offsets and sequences, and a recovery finds only those."""
    disk = MemoryDisk(seed=seed)
    log = open_log(disk)
    idempotent = {"producer_id": 7, "producer_epoch": 0}
    append(log, b"kept", base_sequence=0, **idempotent)
    for number in range(1, 6):
        gather(log, b"lost", base_sequence=number, **idempotent)
    disk.fail(0, errno.ENOSPC, on=("write",))
    with pytest.raises(OSError, match="No space"):
        log.write()
    assert log.log_end_offset == 1
    log.write()
    assert append(log, b"next", base_sequence=1, **idempotent).base_offset == 1
    log.flush()
    disk.kill()
    assert read_all(open_log(disk)) == [(0, b"kept"), (1, b"next")]
