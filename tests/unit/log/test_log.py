"""The log as its callers see it: append, read, seek, roll, let go."""

import errno
from dataclasses import replace

import pytest

from riverlog.log.log import Log
from riverlog.log.retention import Reason
from riverlog.log.segments.gathered_write import Appended
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_TIMESTAMP, LeaderEpoch, Offset
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG, TopicConfig
from riverlog.records.batch import check_produced
from tests.support.batches import batch_of, records_of
from tests.support.disk import MemoryDisk

FOLDER = "/data/orders-0"
SMALL = replace(DEFAULT_TOPIC_CONFIG, segment_bytes=1_000, index_interval_bytes=100)
NOW = 10_000


def open_log(disk: MemoryDisk, config: TopicConfig = SMALL, *, recovery_point: int = 0, clean: bool = False) -> Log:
    return Log.open(disk, FOLDER, config, recovery_point=Offset(recovery_point), clean=clean, now_ms=NOW)


def append(log: Log, *values: bytes, epoch: int = 0, now_ms: int = NOW, **fields: int) -> Appended:
    batch = batch_of(values or (b"value",), **fields)  # type: ignore[arg-type]
    header = check_produced(batch, batch_bytes_max=1 << 20)
    return log.append(batch, header, leader_epoch=LeaderEpoch(epoch), now_ms=now_ms)


def gather(log: Log, value: bytes, *, epoch: int = 0, **fields: int) -> Appended:
    batch = batch_of([value], **fields)  # type: ignore[arg-type]
    header = check_produced(batch, batch_bytes_max=1 << 20)
    return log.gather(batch, header, leader_epoch=LeaderEpoch(epoch), now_ms=NOW)


def read_all(log: Log, offset: int = 0, bytes_max: int = 1 << 20) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    at = Offset(offset)
    while at < log.log_end_offset:
        records = records_of(log.read(at, bytes_max=bytes_max, upto=log.log_end_offset).records)
        found += [(record.offset, record.value or b"") for record in records if record.offset >= at]
        at = Offset(records[-1].offset + 1)
    return found


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


@pytest.fixture
def log(disk: MemoryDisk) -> Log:
    return open_log(disk)


def filled(log: Log, batches: int = 60) -> list[tuple[int, bytes]]:
    values = [b"value %d" % number for number in range(batches * 2)]
    for number in range(0, len(values), 2):
        append(log, *values[number : number + 2], timestamp_ms=1_000 + 10 * number)
    return list(enumerate(values))


def test_appending_gives_offsets_that_grow_by_the_number_of_records(log: Log) -> None:
    assert append(log, b"a", b"b") == Appended(Offset(0), Offset(1), NO_TIMESTAMP, False)
    assert append(log, b"c") == Appended(Offset(2), Offset(2), NO_TIMESTAMP, False)
    assert log.log_end_offset == 3
    assert read_all(log) == [(0, b"a"), (1, b"b"), (2, b"c")]


@pytest.mark.parametrize("bytes_max", [1, 100, 250, 1 << 20])
def test_reading_from_any_offset_gives_all_that_follows(log: Log, bytes_max: int) -> None:
    written = filled(log)
    assert log.segment_count > 3
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
    assert log.segment_count == 2
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


def test_retention_by_age_takes_whole_segments_below_the_limit(log: Log) -> None:
    filled(log)
    log.config = replace(log.config, retention_ms=1_000, file_delete_delay_ms=50)
    segments = log.segment_count
    assert log.enforce_retention(2_200, upto=log.log_end_offset) == []
    deleted = log.enforce_retention(2_500, upto=log.log_end_offset)
    assert [segment.reason for segment in deleted] == [Reason.AGE] * len(deleted)
    assert 0 < len(deleted) < segments - 1
    assert log.log_start_offset == deleted[-1].next_offset
    assert log.remove_deleted(0) == 0
    assert log.remove_deleted(49) == 0
    assert read_all(log, log.log_start_offset)[0][0] == log.log_start_offset
    assert log.remove_deleted(50) > 0
    assert not [name for name in log._disk.list(FOLDER) if name.endswith(".deleted")]


def test_retention_never_passes_what_readers_may_see(log: Log) -> None:
    filled(log)
    log.config = replace(log.config, retention_ms=0)
    log.enforce_retention(NOW, upto=Offset(50))
    assert 0 < log.log_start_offset <= 50


def test_retention_may_take_everything_and_offsets_go_on(log: Log) -> None:
    written = filled(log)
    log.config = replace(log.config, retention_ms=0)
    assert log.enforce_retention(NOW, upto=log.log_end_offset)
    assert log.log_start_offset == log.log_end_offset == len(written)
    assert append(log).base_offset == len(written)


def test_a_producer_outlives_its_records_though_a_crash_came_before_it_was_written_down(disk: MemoryDisk) -> None:
    log = open_log(disk)
    append(log, producer_id=7, producer_epoch=0, base_sequence=0)
    log.roll(NOW)
    disk.kill()
    log = open_log(disk, replace(SMALL, retention_ms=0))
    assert log.enforce_retention(NOW, upto=Offset(1))
    log.flush()
    disk.kill()
    assert [producer_id for producer_id, _ in open_log(disk, recovery_point=1).producers.items()] == [7]


def test_retention_by_size_keeps_at_least_that_much(log: Log) -> None:
    filled(log)
    log.config = replace(log.config, retention_bytes=2_500)
    log.enforce_retention(NOW, upto=log.log_end_offset)
    assert 2_500 <= log.size < 2_500 + 1_000


def test_records_below_the_log_start_go_with_their_segments(log: Log) -> None:
    filled(log)
    log.advance_log_start(Offset(40))
    assert {segment.reason for segment in log.enforce_retention(NOW, upto=log.log_end_offset)} == {Reason.START}
    assert log.log_start_offset == 40
    assert read_all(log, 40)[0][0] == 40
    with pytest.raises(Refusal):
        log.advance_log_start(Offset(log.log_end_offset + 1))


def test_a_range_stays_valid_when_its_segment_goes(log: Log, disk: MemoryDisk) -> None:
    written = filled(log)
    found = log.read(Offset(0), bytes_max=1 << 20, upto=log.log_end_offset)
    open_before = disk.open_files
    log.config = replace(log.config, retention_ms=0, file_delete_delay_ms=0)
    log.enforce_retention(NOW, upto=log.log_end_offset)
    log.remove_deleted(NOW)
    assert [record.value for record in records_of(found.records)] == [value for _, value in written[:22]]
    assert disk.open_files < open_before
    log.flush()
    del found
    assert disk.open_files == 1


@pytest.mark.parametrize("offset", range(0, 121, 3))
def test_truncation_cuts_at_the_batch_that_holds_the_offset(log: Log, offset: int) -> None:
    written = filled(log)
    log.flush()
    log.truncate(Offset(offset), now_ms=NOW)
    end = offset - offset % 2
    assert log.log_end_offset == log.flushed_offset == end
    assert read_all(log) == written[:end]
    assert append(log, b"new", epoch=1).base_offset == end
    assert read_all(log) == [*written[:end], (end, b"new")]
    assert log.end_of_epoch(LeaderEpoch(0)).end_offset == end


def test_epochs_say_where_each_leader_ended(log: Log) -> None:
    append(log, b"a", epoch=1)
    append(log, b"b", epoch=1)
    append(log, b"c", epoch=4)
    assert log.end_of_epoch(LeaderEpoch(0)) == (0, 0)
    assert log.end_of_epoch(LeaderEpoch(1)) == (1, 2)
    assert log.end_of_epoch(LeaderEpoch(3)) == (1, 2)
    assert log.end_of_epoch(LeaderEpoch(4)) == (4, 3)
    assert log.end_of_epoch(LeaderEpoch(5)) == (-1, -1)


def test_epochs_below_the_start_are_known_after_a_cut_at_the_start(disk: MemoryDisk, log: Log) -> None:
    for epoch in (0, 2, 2):
        append(log, epoch=epoch)
    log.advance_log_start(Offset(2))
    log.flush()
    log.truncate(Offset(2), now_ms=NOW)
    append(log, epoch=2)
    log.roll(NOW)
    append(log, epoch=2)
    log.close()
    again = open_log(disk, recovery_point=4, clean=True)
    assert [again.epochs.of(Offset(offset)) for offset in (2, 3)] == [2, 2]


def test_a_sync_covers_what_was_there_when_it_was_planned(log: Log) -> None:
    filled(log)
    planned = log.log_end_offset
    plan = log.pending_sync()
    append(log)
    plan.run()
    assert log.flushed_offset == 0
    log.synced(plan)
    assert log.flushed_offset == planned
    log.flush()
    assert log.flushed_offset == planned + 1


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
    assert log.segment_count > 3
    assert [log.end_of_epoch(LeaderEpoch(epoch)).end_offset for epoch in range(3)] == [20, 40, 60]
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
