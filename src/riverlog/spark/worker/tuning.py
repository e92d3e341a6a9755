"""Readies a worker of Spark for its next task sooner: two habits of PySpark cost more than a small task does.
A worker also keeps the memory that it will need again, and ends without a trace.

Before each task, and each step of a plan, PySpark clears Python's caches of what it imports from, so
that files which programs add are seen. Workers import PySpark itself out of zip archives, whose finders then read the
whole directory again: 80 ms of CPU. Those archives do not change while Spark runs: their finders are dropped, and
whoever imports next makes new ones of what is known.

Behind each task PySpark collects garbage. With numba, pyarrow and pandas loaded that is a walk through several hundred
thousand objects which nobody will ever throw away: 110 ms. They are frozen once they are loaded.

A worker that waits for its next task when Spark ends finds that nobody listens, and PySpark prints a trace of that.

Columns are made in pieces of megabytes, and thrown away once Spark has them. The C library gives pieces of that size
back to the system, which hands them out again page by page, each of them wiped: a third of what decoding costs.
"""

import ctypes
import gc
import os
import sys
from functools import cache, wraps
from pathlib import PurePath
from types import ModuleType
from typing import Any, Final
from zipimport import zipimporter

import pyspark

_DAEMON: Final = "pyspark.daemon"
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
KEPT_BYTES_MAX: Final = 128 * 1024 * 1024
"""Free memory that a worker keeps; what is beyond goes back to the system."""
PIECE_BYTES_MAX: Final = 32 * 1024 * 1024
"""The largest piece that is kept; the C library takes no larger number."""


class Loaded:
    """What a worker has loaded; one for each process."""

    def __init__(self) -> None:
        self._modules = 0

    def freeze(self) -> None:
        """Keep what is loaded out of further collections, if that is more than before."""
        if len(sys.modules) > self._modules:
            self._modules = len(sys.modules)
            gc.collect()  # so that no garbage is kept with it
            gc.freeze()


_LOADED = Loaded()


def tune() -> None:
    """Tune this process: at the end of a task, or at any time in a step of a plan."""
    leave_archives_alone(pyspark)
    _LOADED.freeze()
    end_quietly(sys.modules["__main__"])


@cache
def keep_memory() -> bool:
    """Set the C library to keep what is freed, once for this process; False where it cannot be set."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc has it
    if mallopt is None:
        return False
    return bool(mallopt(_TRIM_THRESHOLD, KEPT_BYTES_MAX) and mallopt(_MMAP_THRESHOLD, PIECE_BYTES_MAX))


def leave_archives_alone(package: ModuleType) -> None:
    """Drop the finders of the archive that a package comes from, and of those beside it."""
    archive: str | None = getattr(package.__loader__, "archive", None)
    if archive is None:
        return
    folder = PurePath(archive).parent
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter) and PurePath(finder.archive).parent == folder:
            del sys.path_importer_cache[path]


def end_quietly(daemon: ModuleType) -> None:
    """End the loop of PySpark's daemon, of which this worker is a copy, without a trace where nobody listens."""
    work = getattr(daemon, "worker", None)
    if getattr(daemon.__spec__, "name", None) != _DAEMON or not callable(work) or hasattr(work, "__wrapped__"):
        return

    @wraps(work)
    def work_quietly(*arguments: Any) -> Any:
        try:
            return work(*arguments)
        except BrokenPipeError:
            os._exit(0)

    daemon.__dict__["worker"] = work_quietly
