"""The process measures itself, and the numbers are its own."""

import mmap
import os
import resource
import time

import pytest

from riverlog.observe.process import read_process, seconds_since_start

needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system has no /proc")


@needs_proc
def test_memory_is_that_of_this_process() -> None:
    ballast = mmap.mmap(-1, 64 * 1024 * 1024)  # not from the heap, which may keep what it had
    ballast.write(b"x" * len(ballast))
    with_ballast = read_process().resident_bytes
    ballast.close()
    without = read_process().resident_bytes
    assert with_ballast is not None and without is not None
    assert with_ballast - without > 32 * 1024 * 1024


@needs_proc
def test_open_files_are_counted() -> None:
    before = read_process().open_files
    descriptor = os.open("/dev/null", os.O_RDONLY)
    during = read_process().open_files
    os.close(descriptor)
    assert before is not None and during == before + 1
    assert read_process().open_files_max == resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def test_cpu_time_only_grows() -> None:
    first = read_process().cpu_seconds
    sum(range(100_000))
    assert read_process().cpu_seconds > first


def test_the_age_of_the_process_grows_with_the_clock() -> None:
    began, age = time.monotonic(), seconds_since_start()
    later = seconds_since_start()
    assert 0 < age < 3_600
    assert 0 <= later - age <= time.monotonic() - began + 0.001
