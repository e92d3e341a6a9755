"""A disk in memory and a small log on it."""

import pytest

from riverlog.log.log import Log
from tests.support.disk import MemoryDisk
from tests.unit.log.logs import open_log


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


@pytest.fixture
def log(disk: MemoryDisk) -> Log:
    return open_log(disk)
