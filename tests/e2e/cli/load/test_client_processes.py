"""Client processes: let go together, heard out, and never left behind. Their work is a few lines of Python here."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from riverlog.cli.load import client_processes
from riverlog.cli.load.client import ClientLoad
from riverlog.cli.terminal.exits import CommandError, ExitCode
from riverlog.cli.terminal.render import ProgressCallback

PRELUDE = """
import json, os, pathlib, sys
share = json.loads(sys.stdin.readline())
pathlib.Path(share["topic"], str(os.getpid())).touch()
def say(**answer): print(json.dumps(answer), flush=True)
"""
SOUND = """
say(ready=True)
assert json.loads(sys.stdin.readline()) == "go"
say(records=1, bytes=10)
say(records=2, bytes=20, seconds=1.0, cpu_seconds=0.5, latency_counts=[[1, 2]], latency_largest=1)
"""
ONE_FAILS = """
if share["records"] == 0: say(trouble="it is closed", exit_code=4)
else: sys.stdin.read()
"""


def work(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    program: str,
    progress: ProgressCallback = lambda _records, _bytes: None,
) -> list[client_processes.ClientOutcome]:
    """Make two processes run a program; it finds the folder in its share and leaves its process id there."""
    monkeypatch.setattr(client_processes, "COMMAND", (sys.executable, "-c", PRELUDE + program))
    shares = [ClientLoad(part="produce", bootstrap="", topic=str(folder), records=number) for number in (0, 1)]
    return asyncio.run(client_processes.work(shares, progress))


def is_running(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True


def test_outcomes_come_back_and_progress_is_the_sum(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    outcomes = work(monkeypatch, tmp_path, SOUND, lambda records, size: seen.append((records, size)))
    assert [(outcome.records, outcome.latencies.largest) for outcome in outcomes] == [(2, 1), (2, 1)]
    assert seen[0] == (1, 10)
    assert seen[-1] == (4, 40)


def test_the_trouble_of_one_is_the_end_of_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="it is closed") as raised:
        work(monkeypatch, tmp_path, ONE_FAILS)
    assert raised.value.exit_code is ExitCode.REFUSED
    assert [pid.name for pid in tmp_path.iterdir() if is_running(pid.name)] == []


def test_a_process_that_dies_without_a_word_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="a client process ended with code 7 before it had done its share"):
        work(monkeypatch, tmp_path, "sys.exit(7)")
