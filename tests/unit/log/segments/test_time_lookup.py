"""Times in a segment: found by an index that is believed only as far as it is true."""

import pytest

from riverlog.log.segments.time_lookup import locate_time
from riverlog.model.ids import Offset
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


def test_every_time_is_located(disk: MemoryDisk) -> None:
    segment = load(disk)
    size = segment.size // COUNT
    for time in range(990, 1_392):
        found = locate_time(segment, time, from_offset=BASE)
        assert found is not None
        assert found[0] == max(0, (time - 1_000 + 8) // 10) * size
    assert locate_time(segment, 1_392, from_offset=BASE) is None
    found = locate_time(segment, 1_000, from_offset=Offset(BASE + 10))
    assert found is not None
    assert found[1].base_offset == BASE + 10


def test_a_last_timestamp_that_no_batch_has_is_found_out(disk: MemoryDisk) -> None:
    end = disk.open(f"/{BASE:020d}.timeindex").size()
    for position in range(end - 12, end):
        disk.damage(f"/{BASE:020d}.timeindex", position, 0x01)
        assert load(disk).last_timestamp == 1_391
        disk.damage(f"/{BASE:020d}.timeindex", position, 0x01)
