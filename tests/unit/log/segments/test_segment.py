"""One segment: what is found, what is verified, what is read again."""

import errno

import pytest

from riverlog.log.segments.log_folder import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, LogFolder, path_of
from riverlog.log.segments.open_files import OpenFiles
from riverlog.log.segments.segment import Segment
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.records.batch import assign, read_header
from tests.support.batches import batch_of
from tests.support.disk import MemoryDisk

BASE = Offset(100)
COUNT = 40


def create(disk: MemoryDisk) -> Segment:
    return Segment.create(LogFolder(disk, OpenFiles(), "", 200), BASE, now_ms=5)


def load(disk: MemoryDisk, *, files: OpenFiles | None = None, upto: Offset | None = None) -> Segment:
    files = files or OpenFiles()
    return Segment.load(LogFolder(disk, files, "", 200), BASE, now_ms=5, upto=upto)


def fill(segment: Segment, count: int = COUNT) -> None:
    """Append batches of two records, each ten milliseconds later than the one before."""
    for number in range(count):
        batch = batch_of([b"a", b"b"], timestamp_ms=1_000 + 10 * number)
        header = read_header(batch)
        base_offset = segment.next_offset
        assign(batch, base_offset, LeaderEpoch(0))
        one = (batch, base_offset, Offset(base_offset + 1), header.first_timestamp, header.max_timestamp)
        segment.append([one])


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    segment = create(disk)
    fill(segment)
    segment.finish_indexes()
    segment.let_go()
    return disk


def test_files_are_named_as_kafka_does() -> None:
    assert path_of("/data/orders-0", Offset(12345678), LOG_SUFFIX) == "/data/orders-0/00000000000012345678.log"


def test_loading_finds_out_what_was_known() -> None:
    disk = MemoryDisk()
    created = create(disk)
    fill(created)
    created.finish_indexes()
    loaded = load(disk)
    for fact in ("size", "next_offset", "first_timestamp", "last_timestamp", "last_timestamp_offset", "index_entries"):
        assert getattr(loaded, fact) == getattr(created, fact)
    assert (loaded.first_timestamp, loaded.last_timestamp) == (1_000, 1_391)
    assert loaded.trailing_bytes == 0
    assert loaded.integrity.flaws() == []


def test_loading_reads_the_end_of_the_segment_only(disk: MemoryDisk) -> None:
    steps = disk.steps
    load(disk)
    assert disk.steps - steps < 12


@pytest.mark.parametrize("loaded", [True, False])
def test_every_offset_is_located(disk: MemoryDisk, loaded: bool) -> None:
    if loaded:
        segment = load(disk)
    else:
        segment = create(MemoryDisk())
        fill(segment)
    size = segment.size // COUNT
    for offset in range(BASE, BASE + 2 * COUNT):
        assert segment.locate(Offset(offset)) == (offset - BASE) // 2 * size
    assert segment.locate(Offset(BASE + 2 * COUNT)) == segment.size


def test_every_time_is_located(disk: MemoryDisk) -> None:
    segment = load(disk)
    size = segment.size // COUNT
    for time in range(990, 1_392):
        found = segment.locate_time(time, from_offset=BASE)
        assert found is not None
        assert found[0] == max(0, (time - 1_000 + 8) // 10) * size
    assert segment.locate_time(1_392, from_offset=BASE) is None
    found = segment.locate_time(1_000, from_offset=Offset(BASE + 10))
    assert found is not None
    assert found[1].base_offset == BASE + 10


def test_lookups_read_little(disk: MemoryDisk) -> None:
    segment = load(disk)
    steps = disk.steps
    segment.locate(Offset(BASE + 30))
    assert disk.steps - steps <= 1


def test_only_what_lies_below_a_limit_is_loaded(disk: MemoryDisk) -> None:
    segment = load(disk, upto=Offset(BASE + 20))
    assert segment.next_offset == BASE + 20
    assert segment.trailing_bytes > 0
    assert segment.last_timestamp == 1_091


def test_truncation_forgets_the_rest(disk: MemoryDisk) -> None:
    for batches in range(COUNT):
        fresh = MemoryDisk()
        segment = create(fresh)
        fill(segment)
        segment.finish_indexes()
        segment.truncate(segment.locate(Offset(BASE + 2 * batches)))
        assert segment.next_offset == BASE + 2 * batches
        assert segment.last_timestamp == (1_000 + 10 * (batches - 1) + 1 if batches else -1)
        assert not fresh.exists(segment.path(INDEX_SUFFIX))
        fill(segment, 3)
        assert load(fresh).next_offset == segment.next_offset


def test_a_last_timestamp_that_no_batch_has_is_found_out(disk: MemoryDisk) -> None:
    end = disk.open(f"/{BASE:020d}.timeindex").size()
    for position in range(end - 12, end):
        disk.damage(f"/{BASE:020d}.timeindex", position, 0x01)
        assert load(disk).last_timestamp == 1_391
        disk.damage(f"/{BASE:020d}.timeindex", position, 0x01)


def test_a_segment_that_was_let_go_reads_its_indexes_again(disk: MemoryDisk) -> None:
    segment = load(disk)
    before = segment.locate(Offset(BASE + 30))
    segment.let_go()
    assert disk.open_files == 0
    assert segment.locate(Offset(BASE + 30)) == before
    segment.let_go()
    disk.remove(segment.path(TIME_INDEX_SUFFIX))
    assert segment.locate(Offset(BASE + 30)) == before


def test_bytes_of_a_failed_write_are_trimmed(disk: MemoryDisk) -> None:
    segment = load(disk)
    segment.file().write(segment.size, [b"half a batch"])
    segment.trim()
    assert segment.file().size() == segment.size


def test_what_a_failed_write_left_is_cut_before_the_next_one_if_not_at_once(disk: MemoryDisk) -> None:
    segment = load(disk)
    end = segment.next_offset
    batch = batch_of([b"c" * 300])
    several = [(batch, Offset(end + number), Offset(end + number), 0, 0) for number in range(3)]
    disk.fail(0, errno.ENOMEM, on=("write", "truncate"), lasting=True)
    for _ in range(20):
        with pytest.raises(OSError, match="Cannot allocate"):
            segment.append(several)
    disk.heal()
    fill(segment, 1)
    assert segment.file().size() == segment.size
