"""What retention deletes of a log, and what it leaves."""

from dataclasses import replace

import pytest

from riverlog.log.log import Log
from riverlog.log.retention import DeletionReason
from riverlog.log.segment_deletion import enforce_retention
from riverlog.model.errors import Refusal
from riverlog.model.ids import Offset
from tests.support.batches import records_of
from tests.support.disk import MemoryDisk
from tests.unit.log.logs import FOLDER, NOW, SMALL, append, filled, open_log, read_all


def test_retention_by_age_takes_whole_segments_below_the_limit(log: Log) -> None:
    filled(log)
    log.configure(replace(log.config, retention_ms=1_000, file_delete_delay_ms=50))
    segments = len(log.segments)
    assert enforce_retention(log, 2_200, upto=log.log_end_offset) == []
    deleted = enforce_retention(log, 2_500, upto=log.log_end_offset)
    assert [segment.reason for segment in deleted] == [DeletionReason.AGE] * len(deleted)
    assert 0 < len(deleted) < segments - 1
    assert log.log_start_offset == deleted[-1].next_offset
    assert log.segments.remove_deleted(0) == 0
    assert log.segments.remove_deleted(49) == 0
    assert read_all(log, log.log_start_offset)[0][0] == log.log_start_offset
    assert log.segments.remove_deleted(50) > 0
    assert not [name for name in log._disk.list(FOLDER) if name.endswith(".deleted")]


def test_retention_never_passes_what_readers_may_see(log: Log) -> None:
    filled(log)
    log.configure(replace(log.config, retention_ms=0))
    enforce_retention(log, NOW, upto=Offset(50))
    assert 0 < log.log_start_offset <= 50


def test_retention_may_take_everything_and_offsets_go_on(log: Log) -> None:
    written = filled(log)
    log.configure(replace(log.config, retention_ms=0))
    assert enforce_retention(log, NOW, upto=log.log_end_offset)
    assert log.log_start_offset == log.log_end_offset == len(written)
    assert append(log).base_offset == len(written)


def test_retention_by_size_keeps_at_least_that_much(log: Log) -> None:
    filled(log)
    log.configure(replace(log.config, retention_bytes=2_500))
    enforce_retention(log, NOW, upto=log.log_end_offset)
    assert 2_500 <= log.size < 2_500 + 1_000


def test_a_producer_outlives_its_records_though_a_crash_came_before_it_was_written_down(disk: MemoryDisk) -> None:
    log = open_log(disk)
    append(log, producer_id=7, producer_epoch=0, base_sequence=0)
    log.roll(NOW)
    disk.kill()
    log = open_log(disk, replace(SMALL, retention_ms=0))
    assert enforce_retention(log, NOW, upto=Offset(1))
    log.flush()
    disk.kill()
    assert [producer_id for producer_id, _ in open_log(disk, recovery_point=1).producers.items()] == [7]


def test_records_below_the_log_start_go_with_their_segments(log: Log) -> None:
    filled(log)
    log.advance_log_start(Offset(40))
    assert {segment.reason for segment in enforce_retention(log, NOW, upto=log.log_end_offset)} == {
        DeletionReason.START
    }
    assert log.log_start_offset == 40
    assert read_all(log, 40)[0][0] == 40
    with pytest.raises(Refusal):
        log.advance_log_start(Offset(log.log_end_offset + 1))


def test_a_range_stays_valid_when_its_segment_goes(log: Log, disk: MemoryDisk) -> None:
    written = filled(log)
    found = log.read(Offset(0), bytes_max=1 << 20, upto=log.log_end_offset)
    open_before = disk.open_files
    log.configure(replace(log.config, retention_ms=0, file_delete_delay_ms=0))
    enforce_retention(log, NOW, upto=log.log_end_offset)
    log.segments.remove_deleted(NOW)
    assert [record.value for record in records_of(found.records)] == [value for _, value in written[:22]]
    assert disk.open_files < open_before
    log.flush()
    del found
    assert disk.open_files == 1
