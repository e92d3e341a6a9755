"""Reading round damage: nothing is skipped, nothing wrong is given, and every way to look for records knows of it."""

from contextlib import suppress
from dataclasses import replace

import pytest

from riverlog.log.log import Log
from riverlog.log.segment_deletion import enforce_retention
from riverlog.log.truncation import truncate
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from riverlog.records.batch import check_produced
from tests.support.batches import batch_of, records_of
from tests.support.disk import Crashed, MemoryDisk

FOLDER = "/data/orders-0"
CONFIG = replace(DEFAULT_TOPIC_CONFIG, segment_bytes=400, index_interval_bytes=100)
COUNT = 30
SEGMENT = 5
"""Records of a segment, each in its batch."""
BATCH = 76


def open_log(disk: MemoryDisk, recovery_point: int = 0, *, clean: bool = False, compacted: bool = False) -> Log:
    return Log.open(
        disk,
        FOLDER,
        CONFIG,
        recovery_point=Offset(recovery_point),
        clean=clean,
        now_ms=0,
        compacted=compacted,
    )


def append(log: Log, number: int) -> None:
    batch = batch_of([b"value %02d" % number], timestamp_ms=100 * number)
    assert len(batch) == BATCH
    header = check_produced(batch, batch_bytes_max=1 << 20)
    log.append(batch, header, leader_epoch=LeaderEpoch(0), now_ms=0)


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_folder("/data")
    disk.sync_folder("/")
    log = open_log(disk)
    for number in range(COUNT):
        append(log, number)
    log.close()
    assert log.segment_facts()[2].base_offset == 2 * SEGMENT
    return disk


def path(segment: int, suffix: str = "log") -> str:
    return f"{FOLDER}/{segment * SEGMENT:020d}.{suffix}"


def refused(log: Log) -> list[int]:
    """Read each offset; give those that are refused."""
    found = []
    for offset in range(COUNT):
        try:
            (record,) = records_of(log.read(Offset(offset), bytes_max=1, upto=log.log_end_offset).records)
        except Refusal as refusal:
            if refusal.code is not ErrorCode.CORRUPT_MESSAGE:
                raise
            found.append(offset)
        else:
            assert record.offset == offset
            assert record.value == b"value %02d" % offset
    return found


@pytest.mark.parametrize("clean", [True, False])
def test_a_missing_file_in_the_middle_is_missed(disk: MemoryDisk, clean: bool) -> None:
    for suffix in ("log", "index", "timeindex"):
        disk.remove(path(2, suffix))
    log = open_log(disk, COUNT, clean=clean)
    assert refused(log) == list(range(2 * SEGMENT, 3 * SEGMENT))
    append(log, COUNT)
    log.close()
    assert refused(open_log(disk, COUNT + 1, clean=clean)) == list(range(2 * SEGMENT, 3 * SEGMENT))


def test_a_gap_of_a_compacted_log_is_none(disk: MemoryDisk) -> None:
    for suffix in ("log", "index", "timeindex"):
        disk.remove(path(2, suffix))
    log = open_log(disk, COUNT, clean=True, compacted=True)
    (record,) = records_of(log.read(Offset(2 * SEGMENT), bytes_max=1, upto=Offset(COUNT)).records)
    assert record.offset == 3 * SEGMENT
    assert log.damage == []


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("size", [0, 1, BATCH, BATCH + 1, 4 * BATCH + 60])
@pytest.mark.parametrize("segment", [1, COUNT // SEGMENT - 1])
def test_a_file_that_is_too_short_is_missed(disk: MemoryDisk, segment: int, size: int, clean: bool) -> None:
    file = disk.open(path(segment))
    file.truncate(size)
    file.sync()
    log = open_log(disk, COUNT, clean=clean)
    lost = list(range(segment * SEGMENT + size // BATCH, segment * SEGMENT + SEGMENT))
    assert refused(log) == lost
    append(log, COUNT)
    log.close()
    log = open_log(disk, COUNT + 1, clean=clean)
    assert refused(log) == lost
    assert log.log_end_offset == COUNT + 1


def test_zeros_in_the_middle_lose_what_they_cover(disk: MemoryDisk) -> None:
    file = disk.open(path(3))
    file.write(BATCH + 10, [bytes(2 * BATCH)])
    file.sync()
    for suffix in ("index", "timeindex"):
        disk.remove(path(3, suffix))
    assert refused(open_log(disk, COUNT, clean=True)) == [3 * SEGMENT + 1, 3 * SEGMENT + 2, 3 * SEGMENT + 3]


def test_damage_in_the_active_segment_keeps_what_lies_behind_the_recovery_point(disk: MemoryDisk) -> None:
    active = COUNT - SEGMENT
    disk.damage(path(COUNT // SEGMENT - 1), BATCH + 8)
    log = open_log(disk, active + 2)
    assert refused(log) == [active + 1]
    assert log.log_end_offset == COUNT


@pytest.mark.parametrize("position", [8, 40, 70])
def test_times_know_of_damage(disk: MemoryDisk, position: int) -> None:
    lost = 2 * SEGMENT + 2
    disk.damage(path(2), 2 * BATCH + position)
    log = open_log(disk, COUNT, clean=True)
    for number in range(COUNT):
        if number in (lost, lost + 1):
            continue
        found = log.offset_for_time(100 * number)
        assert found is not None
        assert found.offset == number
    for timestamp in (100 * lost - 50, 100 * lost, 100 * lost + 50):
        with pytest.raises(Refusal, match="damaged"):
            log.offset_for_time(timestamp)
    latest = log.max_timestamp()
    assert latest is not None
    assert latest.offset == COUNT - 1


def test_damage_at_the_end_may_hide_the_latest_record(disk: MemoryDisk) -> None:
    disk.damage(path(COUNT // SEGMENT - 1), 4 * BATCH + 70)
    log = open_log(disk, COUNT, clean=True)
    assert refused(log) == [COUNT - 1]
    with pytest.raises(Refusal):
        log.max_timestamp()
    with pytest.raises(Refusal):
        log.offset_for_time(100 * COUNT)


def test_retention_lets_damage_go_and_the_file_forgets_it(disk: MemoryDisk) -> None:
    disk.damage(path(1), 70)
    log = open_log(disk, COUNT, clean=True)
    assert refused(log) == [SEGMENT]
    log.flush()
    assert disk.exists(f"{FOLDER}/quarantine")
    log.advance_log_start(Offset(3 * SEGMENT))
    assert log.damage == []
    deleted = enforce_retention(log, 0, upto=Offset(COUNT))
    assert [segment.base_offset for segment in deleted if segment.damage] == [SEGMENT]
    log.close()
    assert open_log(disk, COUNT, clean=True).quarantine.entries == []


@pytest.mark.parametrize("steps", range(12))
def test_a_crash_while_it_is_written_down_costs_nothing(disk: MemoryDisk, steps: int) -> None:
    disk.damage(path(1), 70)
    log = open_log(disk, COUNT, clean=True)
    assert refused(log) == [SEGMENT]
    plan = log.pending_sync()
    disk.crash_after(steps)
    with suppress(Crashed):
        plan.run()
    disk.crash()
    log = open_log(disk, COUNT)
    assert refused(log) == [SEGMENT]
    assert log.log_end_offset == COUNT


def test_truncating_into_damage_ends_before_it(disk: MemoryDisk) -> None:
    disk.damage(path(4), BATCH + 70)
    log = open_log(disk, COUNT, clean=True)
    assert refused(log) == [4 * SEGMENT + 1]
    truncate(log, Offset(4 * SEGMENT + 1), now_ms=0)
    assert log.log_end_offset == 4 * SEGMENT + 1
    assert log.damage == []
    append(log, 4 * SEGMENT + 1)
    (record,) = records_of(log.read(Offset(4 * SEGMENT + 1), bytes_max=1, upto=log.log_end_offset).records)
    assert record.value == b"value 21"


def test_a_read_tells_that_a_segment_ended_before_the_rest() -> None:
    log = Log.open(
        MemoryDisk(),
        "/data/orders-0",
        replace(DEFAULT_TOPIC_CONFIG, segment_bytes=250),
        recovery_point=Offset(0),
        clean=True,
        now_ms=0,
    )
    for _ in range(4):
        batch = memoryview(batch_of([b"a" * 40]))
        log.append(batch, check_produced(batch, batch_bytes_max=1 << 20), leader_epoch=LeaderEpoch(0), now_ms=0)
    assert len(log.segments) > 1
    found = log.read(Offset(0), bytes_max=1 << 20, upto=Offset(4))
    assert found.next_offset < 4
    assert found.stops_short_of(Offset(4))
    last = log.read(Offset(3), bytes_max=1 << 20, upto=Offset(4))
    assert not last.stops_short_of(Offset(4))
    assert not log.read(Offset(4), bytes_max=1 << 20, upto=Offset(4)).stops_short_of(Offset(4))
