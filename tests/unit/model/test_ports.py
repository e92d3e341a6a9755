"""The ports, the real world and the one of the tests have the same doors."""

import inspect

import pytest

from riverlog.model import ports
from riverlog.world.clock import SystemClock
from riverlog.world.disk import FileSystem, SystemFile, SystemLock
from riverlog.world.network import TcpNetwork
from riverlog.world.workers import ThreadWorkers
from tests.support.disk import MemoryDisk, MemoryFile, MemoryLock


@pytest.mark.parametrize(
    ("port", "implementation"),
    [
        (ports.Clock, SystemClock),
        (ports.Disk, FileSystem),
        (ports.Disk, MemoryDisk),
        (ports.File, SystemFile),
        (ports.File, MemoryFile),
        (ports.FileLock, SystemLock),
        (ports.FileLock, MemoryLock),
        (ports.Network, TcpNetwork),
        (ports.Workers, ThreadWorkers),
    ],
)
def test_every_method_of_a_port_is_there_with_the_same_parameters(port, implementation):
    for name, method in inspect.getmembers(port, inspect.isfunction):
        if name.startswith("_"):
            continue
        offered = getattr(implementation, name)
        if not inspect.isbuiltin(offered):  # these have no signature to look at
            assert list(inspect.signature(offered).parameters) == list(inspect.signature(method).parameters), name
