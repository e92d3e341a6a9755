"""What a plan makes durable, and in which order."""

import errno

import pytest

from riverlog.log.segments.open_files import write_file
from riverlog.log.sync import SyncPlan
from riverlog.model.ids import Offset
from tests.support.disk import MemoryDisk


def test_all_that_the_plan_names_survives_a_crash() -> None:
    disk = MemoryDisk()
    disk.make_folder("/log")
    plan = SyncPlan(disk, Offset(5))
    plan.files.append(write_file(disk, "/log/file", b"content"))
    plan.folders += ["/log", "/"]
    plan.replacements["/log/small"] = b"small"
    plan.run()
    del plan
    assert disk.open_files == 0
    disk.crash()
    assert disk.open("/log/file").read(0, 10) == b"content"
    assert disk.open("/log/small").read(0, 10) == b"small"


def test_a_failure_is_raised_as_it_is() -> None:
    disk = MemoryDisk()
    plan = SyncPlan(disk, Offset(5), [write_file(disk, "/file", b"content")])
    disk.fail(0, errno.EIO, on=("sync",))
    with pytest.raises(OSError, match="Input/output error"):
        plan.run()


def test_a_disk_without_room_for_small_files_keeps_the_rest_and_they_wait() -> None:
    disk = MemoryDisk()
    disk.make_folder("/log")
    plan = SyncPlan(disk, Offset(5), [write_file(disk, "/log/file", b"content")], ["/log", "/"])
    plan.replacements |= {"/log/small": b"old", "/log/other": b"other"}
    disk.fail(0, errno.ENOSPC, on=("write",))
    plan.run()
    assert plan.postponed
    disk.crash()
    assert disk.open("/log/file").read(0, 10) == b"content"
    assert not disk.exists("/log/small")

    later = SyncPlan(disk, Offset(6), folders=["/log"])
    later.take_over(plan)
    later.replacements["/log/small"] = b"new"
    later.run()
    assert not later.postponed
    assert disk.open("/log/small").read(0, 10) == b"new"
    assert disk.open("/log/other").read(0, 10) == b"other"
