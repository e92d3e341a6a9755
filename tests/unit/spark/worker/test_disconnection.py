"""A task whose rows end because nobody listens any more."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from riverlog.spark.worker.disconnection import SparkDisconnected, all_rows, is_closed

WORKER = """
def invoke(rows, outfile):
    return list(rows)
"""


def invoked(rows: Iterator[int], outfile: Any) -> list[int]:
    """Read rows in a frame like that of a worker of PySpark."""
    module: dict[str, Any] = {"__name__": "pyspark.worker"}
    exec(WORKER, module)
    found: list[int] = module["invoke"](rows, outfile)
    return found


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_rows_that_end_while_somebody_listens_are_all(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    theirs.send(b"more is to be read")
    with ours.makefile("wb") as outfile:
        assert not is_closed(outfile)
        assert invoked(all_rows(iter([1, 2])), outfile) == [1, 2]


def test_rows_that_end_because_nobody_listens_are_not(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    with ours.makefile("wb") as outfile:
        theirs.send(b"more is to be read")
        theirs.close()
        with pytest.raises(SparkDisconnected):
            invoked(all_rows(iter([1, 2])), outfile)


def test_elsewhere_rows_are_taken_as_they_are() -> None:
    assert list(all_rows(iter([1, 2]))) == [1, 2]


def test_who_leaves_says_nothing() -> None:
    code = (
        "import atexit; from riverlog.spark.worker.disconnection import leave; atexit.register(print, 'late'); leave()"
    )
    left = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (left.returncode, left.stdout, left.stderr) == (0, b"", b"")
