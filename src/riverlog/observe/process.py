"""What the system knows about this process. Where it has no /proc, only what can be had without.

And what it does with its memory: Python looks through all objects again and again while many are made that stay.
"""

import gc
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

_HAS_PROC: Final = os.path.isdir("/proc/self/fd")
_START_TIME_FIELD: Final = 19  # of /proc/self/stat, counted from behind the name, which may hold blanks itself


class ProcessSample(NamedTuple):
    """The process at one moment; None where the system does not tell."""

    cpu_seconds: float
    resident_bytes: int | None
    open_files: int | None
    open_files_max: int


def read_process() -> ProcessSample:
    """Measure this process now."""
    return ProcessSample(
        cpu_seconds=time.process_time(),
        resident_bytes=int(_read("statm").split()[1]) * resource.getpagesize() if _HAS_PROC else None,
        open_files=len(os.listdir("/proc/self/fd")) if _HAS_PROC else None,
        open_files_max=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    )


def seconds_since_start() -> float:
    """Return the age of this process, interpreter and imports included; without /proc, the CPU time that it took."""
    if not _HAS_PROC:
        return time.process_time()
    ticks = int(_read("stat").rpartition(")")[2].split()[_START_TIME_FIELD])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def objects_that_stay() -> Iterator[None]:
    """Look for no cycles while many objects are made that stay: there is nothing to find."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def keep_objects() -> None:
    """Never look at the objects of this moment again: a process that has loaded what it works on calls it once."""
    gc.freeze()


def _read(name: str) -> str:
    with open(f"/proc/self/{name}", encoding="ascii", errors="replace") as file:
        return file.read()
