"""One segment: what is found, what is verified, what is read again."""

import errno

import pytest

from riverlog.log.segments.log_folder import INDEX_SUFFIX
from riverlog.model.ids import Offset
from tests.support.batches import batch_of
from tests.support.disk import MemoryDisk
from tests.unit.log.segments.one_segment import BASE, COUNT, create, fill, load


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    segment = create(disk)
    fill(segment)
    segment.index_files.write()
    segment.release()
    return disk


def test_loading_finds_out_what_was_known() -> None:
    disk = MemoryDisk()
    created = create(disk)
    fill(created)
    created.index_files.write()
    loaded = load(disk)
    for fact in ("size", "next_offset", "first_timestamp", "last_timestamp", "last_timestamp_offset", "index_entries"):
        assert getattr(loaded, fact) == getattr(created, fact)
    assert (loaded.first_timestamp, loaded.last_timestamp) == (1_000, 1_391)
    assert loaded.trailing_bytes == 0
    assert loaded.integrity.flaws() == []


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
        segment.index_files.write()
        segment.truncate(segment.locate(Offset(BASE + 2 * batches)))
        assert segment.next_offset == BASE + 2 * batches
        assert segment.last_timestamp == (1_000 + 10 * (batches - 1) + 1 if batches else -1)
        assert not fresh.exists(segment.path(INDEX_SUFFIX))
        fill(segment, 3)
        assert load(fresh).next_offset == segment.next_offset


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
