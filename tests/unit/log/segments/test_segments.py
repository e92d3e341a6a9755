"""The segments of a partition, in order."""

import pytest

from riverlog.log.segments.log_folder import LogFolder
from riverlog.log.segments.open_files import OpenFiles
from riverlog.log.segments.segments import Segments
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.records.batch import assign, read_header
from tests.support.batches import batch_of
from tests.support.disk import MemoryDisk


def segments_on(disk: MemoryDisk, *bases: int, files: OpenFiles | None = None) -> Segments:
    folder = LogFolder(disk, files or OpenFiles(), "", 100)
    return Segments(folder, [Offset(base) for base in bases], now_ms=0)


def append(segments: Segments, timestamp_ms: int) -> None:
    active = segments.active
    batch = batch_of([b"value"], timestamp_ms=timestamp_ms)
    assign(batch, active.next_offset, LeaderEpoch(0))
    header = read_header(batch)
    active.append([(batch, header.base_offset, header.last_offset, timestamp_ms, timestamp_ms)])


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


@pytest.fixture
def segments(disk: MemoryDisk) -> Segments:
    """Five segments of ten records; their times overlap."""
    segments = segments_on(disk)
    for base in range(0, 50, 10):
        segments.begin(Offset(base), now_ms=base)
        for number in range(10):
            append(segments, timestamp_ms=base * 10 + number * 15)
    return segments


def test_an_offset_belongs_to_the_last_segment_that_begins_before_it(segments: Segments) -> None:
    assert [segments.slot_of(Offset(offset)) for offset in (0, 9, 10, 49, 500)] == [0, 0, 1, 4, 4]


def test_a_time_belongs_to_the_first_segment_that_reaches_it(segments: Segments) -> None:
    assert [segments.slot_of_time(time) for time in (0, 135, 136, 235, 236, 535, 536)] == [0, 0, 1, 1, 2, 4, 5]


def test_segments_are_learnt_about_when_they_are_needed(segments: Segments, disk: MemoryDisk) -> None:
    segments.close(segments.active)
    again = segments_on(disk, *segments.bases)
    assert list(again.known()) == []
    assert again[2].next_offset == 30
    assert [segment.base_offset for segment in again.known()] == [20]
    again.reopen_last()
    assert again.active.next_offset == 50


def test_few_files_are_open_however_many_segments_there_are(disk: MemoryDisk) -> None:
    many = segments_on(disk, files=OpenFiles(files_max=3))
    for base in range(60):
        many.begin(Offset(base), now_ms=0)
        append(many, timestamp_ms=base)
        many.active.unsynced = False
        many.unsynced_files.clear()
    assert disk.open_files <= 4
    assert [segment.locate(segment.base_offset) for segment in many] == [0] * 60
    assert disk.open_files <= 4


def test_deleted_segments_are_renamed_now_and_removed_when_due(segments: Segments, disk: MemoryDisk) -> None:
    segments.delete(0, 2, delay_ms=100)
    assert segments.bases == [20, 30, 40]
    renamed = [name for name in disk.list("/") if name.endswith(".deleted")]
    assert renamed == [f"{base:020d}.{kind}.deleted" for base in (0, 10) for kind in ("index", "log", "timeindex")]
    assert segments.remove_deleted(5_000) == 0, "the delay begins"
    assert segments.remove_deleted(5_099) == 0
    assert segments.remove_deleted(5_100) == 6
    assert not [name for name in disk.list("/") if name.endswith(".deleted")]


def test_a_segment_that_cannot_be_begun_leaves_the_active_one(segments: Segments, disk: MemoryDisk) -> None:
    active = segments.active
    disk.fail(0, 28, on=("create",))
    with pytest.raises(OSError, match="No space"):
        segments.begin(Offset(50), now_ms=0)
    assert segments.active is active
    assert segments.bases[-1] == 40
    append(segments, timestamp_ms=1)
