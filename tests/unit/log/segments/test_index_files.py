"""The index files of a segment: read instead of the batches, and made again where they are gone."""

import pytest

from riverlog.log.segments.log_folder import INDEX_SUFFIX, TIME_INDEX_SUFFIX
from riverlog.model.ids import Offset
from tests.support.disk import MemoryDisk
from tests.unit.log.segments.one_segment import BASE, create, fill, load


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    segment = create(disk)
    fill(segment)
    segment.index_files.write()
    segment.release()
    return disk


def test_loading_reads_the_end_of_the_segment_only(disk: MemoryDisk) -> None:
    steps = disk.steps
    load(disk)
    assert disk.steps - steps < 12


def test_a_segment_that_was_released_reads_its_indexes_again(disk: MemoryDisk) -> None:
    segment = load(disk)
    before = segment.locate(Offset(BASE + 30))
    segment.release()
    assert disk.open_files == 0
    assert segment.locate(Offset(BASE + 30)) == before
    segment.release()
    disk.remove(segment.path(TIME_INDEX_SUFFIX))
    assert segment.locate(Offset(BASE + 30)) == before


def test_entries_that_are_not_in_the_files_wait_until_they_are_many() -> None:
    segment = create(MemoryDisk())
    fill(segment, 60)
    assert segment.index_files.tails() == []
    fill(segment, 200)
    (offsets, position, content), _times = segment.index_files.tails()
    assert (offsets, position) == (segment.path(INDEX_SUFFIX), 0)
    assert len(content) == 8 * segment.index_entries
    assert segment.index_files.tails() == []
