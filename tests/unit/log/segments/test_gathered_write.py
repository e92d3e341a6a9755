"""A gathered write: all or none."""

import errno

import pytest

from riverlog.log.segments.gathered_write import GatheredBatch, write_gathered
from riverlog.model.ids import Offset
from tests.support.disk import MemoryDisk


def some(count: int) -> list[GatheredBatch]:
    return [(b"%d" % number * 100, Offset(number), Offset(number), 0, 0) for number in range(count)]


def test_all_are_written_in_order_with_one_call() -> None:
    disk = MemoryDisk()
    file = disk.open("/a", create=True)
    steps = disk.steps
    write_gathered(file, 0, some(5))
    assert disk.steps - steps == 1
    assert file.read(0, 1_000) == b"".join(b"%d" % number * 100 for number in range(5))


@pytest.mark.parametrize("seed", range(20))
def test_of_a_failed_write_nothing_whole_is_left(seed: int) -> None:
    disk = MemoryDisk(seed=seed)
    file = disk.open("/a", create=True)
    file.write(0, (b"before",))
    disk.fail(0, errno.ENOSPC, on=("write",))
    with pytest.raises(OSError, match="No space"):
        write_gathered(file, 6, some(5))
    assert file.read(0, 1_000) == b"before"


def test_what_cannot_be_taken_back_is_the_end_of_the_disk() -> None:
    disk = MemoryDisk()
    file = disk.open("/a", create=True)
    disk.fail(0, errno.ENOSPC, on=("write", "truncate"), lasting=True)
    with pytest.raises(OSError, match="could not be taken back") as failed:
        write_gathered(file, 0, some(2))
    assert failed.value.errno == errno.EIO


def test_what_cannot_be_taken_back_now_says_no_more_than_why_it_was_not_written() -> None:
    disk = MemoryDisk()
    file = disk.open("/a", create=True)
    disk.fail(0, errno.ENOMEM, on=("write", "truncate"), lasting=True)
    with pytest.raises(OSError, match="Cannot allocate") as failed:
        write_gathered(file, 0, some(2))
    assert failed.value.errno == errno.ENOMEM
