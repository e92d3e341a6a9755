"""The process measures itself, and the numbers are its own."""

import gc
import mmap
import os
import resource
import time

import pytest

from riverlog.observe.process import keep_objects, objects_that_stay, read_process, seconds_since_start

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


def test_the_collector_rests_while_objects_are_made_and_goes_on_as_it_was() -> None:
    assert gc.isenabled()
    with objects_that_stay():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with objects_that_stay():
            pass
        assert not gc.isenabled(), "who had switched it off is not overruled"
    finally:
        gc.enable()


def test_what_is_kept_is_not_looked_at_again() -> None:
    kept = gc.get_freeze_count()
    try:
        keep_objects()
        assert gc.get_freeze_count() > kept
    finally:
        gc.unfreeze()
