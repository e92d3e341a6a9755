"""What a plan makes durable, and in which order."""

import errno

import pytest

from riverlog.log.files import write_file
from riverlog.log.sync import SyncPlan
from riverlog.model.ids import Offset
from tests.support.disk import MemoryDisk


def test_all_that_the_plan_names_survives_a_crash() -> None:
    disk = MemoryDisk()
    disk.make_folder("/log")
    plan = SyncPlan(disk, Offset(5))
    plan.files.append(write_file(disk, "/log/file", b"content"))
    plan.folders += ["/log", "/"]
    plan.replacements.append(("/log/small", b"small"))
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
