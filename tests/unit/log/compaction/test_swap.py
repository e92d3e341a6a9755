"""Taking over a cleaned segment: readers, retention and names while it happens, and what a crash leaves."""

from dataclasses import replace

import pytest

from riverlog.log.compaction.cleaning import clean, plan_cleaning
from riverlog.log.compaction.swap import Swap, begin_swap, remove_cleaned
from riverlog.log.log import Log
from riverlog.log.segment_deletion import enforce_retention
from riverlog.model.ids import Offset
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from riverlog.records.batch import check_produced
from riverlog.records.record import BatchBuilder
from tests.support.batches import records_of
from tests.support.compacting import compact, dirt_of
from tests.support.disk import MemoryDisk

FOLDER = "/data/orders-0"
CONFIG = replace(DEFAULT_TOPIC_CONFIG, cleanup_compact=True, cleanup_delete=True, file_delete_delay_ms=60_000)
NOW = 50_000


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_folder("/data")
    disk.sync_folder("/")
    return disk


@pytest.fixture
def log(disk: MemoryDisk) -> Log:
    """Three segments of a record each, all of the same key, and an empty active one."""
    log = Log.open(disk, FOLDER, CONFIG, recovery_point=Offset(0), clean=True, now_ms=NOW)
    for value in (b"1", b"2", b"3"):
        builder = BatchBuilder()
        builder.append(b"key", value, timestamp_ms=NOW)
        batch = memoryview(builder.build())
        log.append(batch, check_produced(batch, batch_bytes_max=1 << 20), leader_epoch=0, now_ms=NOW)  # type: ignore[arg-type]
        log.roll(NOW)
    log.flush()
    return log


def cleaned(disk: MemoryDisk, log: Log) -> Swap:
    cleaning = plan_cleaning(
        log, dirt_of(log, now_ms=NOW), now_ms=NOW, keys_bytes_max=1 << 20, bytes_per_second_max=1e9
    )
    (group,) = clean(disk, cleaning, lambda _seconds: None)
    swap = begin_swap(log, group.replaced)
    assert swap is not None
    return swap


def values(log: Log, offset: int = 0) -> list[bytes | None]:
    found: list[bytes | None] = []
    position = Offset(offset)
    while position < log.log_end_offset:
        read = log.read(position, bytes_max=1_000, upto=log.log_end_offset)
        found += [record.value for record in records_of(read.records)]
        position = read.next_offset
    return found


def test_readers_see_the_old_or_the_new_at_every_step(disk: MemoryDisk, log: Log) -> None:
    held = log.read(Offset(0), bytes_max=1_000, upto=log.log_end_offset).records
    swap = cleaned(disk, log)
    swap.announce()
    assert values(log) == [b"1", b"2", b"3"]
    swap.take_over()
    assert values(log) == [b"3"]
    swap.confirm()
    swap.finish()
    assert values(log) == [b"3"]
    assert [record.value for record in records_of(held)] == [b"1"]
    assert len(log.segments) == 2
    live = [name for name in disk.list(FOLDER) if not name.endswith((".deleted", "checkpoint", ".snapshot"))]
    assert live == [f"{0:020d}.index", f"{0:020d}.log", f"{0:020d}.timeindex", f"{3:020d}.log"]
    assert log.segments.remove_deleted(0) == 0
    assert log.segments.remove_deleted(60_000) > 0
    assert not any(name.endswith(".deleted") for name in disk.list(FOLDER))


def test_retention_waits_until_the_swap_is_done(disk: MemoryDisk, log: Log) -> None:
    swap = cleaned(disk, log)
    log.configure(replace(CONFIG, retention_ms=0))
    assert enforce_retention(log, NOW + 1, upto=Offset(3)) == []
    swap.announce()
    swap.take_over()
    assert enforce_retention(log, NOW + 1, upto=Offset(3)) == []
    swap.confirm()
    swap.finish()
    assert [deleted.next_offset for deleted in enforce_retention(log, NOW + 1, upto=Offset(3))] == [3]


def test_a_place_that_has_changed_is_not_taken(disk: MemoryDisk, log: Log) -> None:
    replaced = tuple(log.segment_facts()[:3])
    assert begin_swap(log, tuple(log.segment_facts())) is None, "the active segment is never replaced"
    log.configure(replace(CONFIG, cleanup_compact=False))
    assert begin_swap(log, replaced) is None
    log.configure(replace(CONFIG, retention_ms=0))
    log.advance_log_start(Offset(1))
    log.configure(CONFIG)
    enforce_retention(log, NOW, upto=Offset(1))
    assert begin_swap(log, replaced) is None


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_a_crash_after_each_step_is_made_good(disk: MemoryDisk, log: Log, steps: int, seed: int) -> None:
    swap = cleaned(disk, log)
    for step in (swap.announce, swap.take_over, swap.confirm, swap.finish)[:steps]:
        step()
    disk.random.seed(seed)
    disk.crash()
    log = Log.open(disk, FOLDER, CONFIG, recovery_point=Offset(3), clean=False, now_ms=NOW)
    assert values(log) == ([b"3"] if steps else [b"1", b"2", b"3"])
    assert log.damage == []
    assert not any(name.endswith((".swap", ".cleaned", ".deleted")) for name in disk.list(FOLDER))
    compact(disk, log, now_ms=NOW)
    assert values(log) == [b"3"]


def test_old_indexes_never_meet_the_new_segment(disk: MemoryDisk, log: Log) -> None:
    log.configure(replace(CONFIG, index_interval_bytes=1))
    swap = cleaned(disk, log)
    swap.announce()
    disk.crash()
    Log.open(disk, FOLDER, CONFIG, recovery_point=Offset(3), clean=False, now_ms=NOW)
    assert f"{0:020d}.index" not in disk.list(FOLDER)


def test_a_swap_that_kafka_had_not_decided_is_undone(disk: MemoryDisk, log: Log) -> None:
    cleaned(disk, log).announce()
    disk.open(f"{FOLDER}/{0:020d}.txnindex.cleaned", create=True).close()
    log.release()
    log = Log.open(disk, FOLDER, CONFIG, recovery_point=Offset(3), clean=False, now_ms=NOW)
    assert values(log) == [b"1", b"2", b"3"]
    assert not any(name.endswith((".swap", ".cleaned")) for name in disk.list(FOLDER))


def test_a_cleaning_under_way_does_not_undo_the_swap_before_it(disk: MemoryDisk, log: Log) -> None:
    cleaned(disk, log).announce()
    disk.open(f"{FOLDER}/{3:020d}.log.cleaned", create=True).close()
    log.release()
    log = Log.open(disk, FOLDER, CONFIG, recovery_point=Offset(3), clean=False, now_ms=NOW)
    assert values(log) == [b"3"]


def test_what_nobody_takes_over_is_removed(disk: MemoryDisk, log: Log) -> None:
    cleaned(disk, log)
    remove_cleaned(disk, FOLDER, [Offset(0), Offset(1)])
    assert not any(name.endswith(".cleaned") for name in disk.list(FOLDER))
