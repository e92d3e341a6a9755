"""Whether Spark still listens to a task: the rows of a query that is stopped end early, as if these were all.

A worker of PySpark reads rows from a socket. If Spark closes it in the middle, Arrow takes what was read for all there
is. Nobody would learn what such a task wrote, so it must not finish: it takes back what it has written, and ends.
"""

import os
import select
import sys
from collections.abc import Iterator
from types import FrameType
from typing import IO, Any, Final, NoReturn, TypeVar

T = TypeVar("T")

_GONE: Final = select.POLLHUP | getattr(select, "POLLRDHUP", 0)


class SparkDisconnected(Exception):
    """Spark has ended this task, and does not want to know why."""


def all_rows(rows: Iterator[T]) -> Iterator[T]:
    """Yield all rows of a task; SparkDisconnected where they are not all."""
    yield from rows
    if is_disconnected():
        raise SparkDisconnected


def is_disconnected() -> bool:
    """Return whether this is called by a worker of PySpark that nobody listens to."""
    output = _output(sys._getframe())
    return output is not None and is_closed(output)


def leave() -> NoReturn:
    """End this worker, without the traces that PySpark prints when it finds out by itself that nobody listens."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def is_closed(output: IO[Any]) -> bool:
    """Return whether whoever reads there has gone."""
    poll = select.poll()
    poll.register(output.fileno(), _GONE)
    return bool(poll.poll(0))


def _output(frame: FrameType | None) -> IO[Any] | None:
    """Find what the worker writes to: PySpark hands it to none of its data sources, but it calls them."""
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith("pyspark.") and "outfile" in frame.f_locals:
            found: IO[Any] = frame.f_locals["outfile"]
            return found
        frame = frame.f_back
    return None
