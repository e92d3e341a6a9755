"""Queries that are stopped and reset on the command line, with a driver that reports as sessions do."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from riverlog.checkpoints.pipelines.starts import FILE
from riverlog.checkpoints.remote import RemoteStore
from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode
from tests.support.node import Node
from tests.support.waiting import until

PATH = "/pipelines/revenue"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with Node(tmp_path, settings={"metrics.port": "-1", "checkpoints.port": "0"}) as node:
        yield node


class Driver:
    """Reports that its query runs until it hears that it is to stop, and then that it has stopped."""

    def __init__(self, address: str) -> None:
        self._facts = {"query": "q", "run": "r", "began_ms": int(time.time() * 1000)}
        self._store = RemoteStore(address)
        self.heeds = False
        self.reports = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._drive)

    def __enter__(self) -> "Driver":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _drive(self) -> None:
        with self._store as store:
            while not self._ended.wait(0.02):
                is_to_stop = store.report(PATH, {**self._facts, "state": "running"})
                self.reports += 1
                if is_to_stop and self.heeds:
                    store.report(PATH, {**self._facts, "state": "stopped", "ended_ms": int(time.time() * 1000)})
                    return


def ask(node: Node, *arguments: str) -> int:
    return main(["pipelines", *arguments, "--store", node.addresses["checkpoints"]])


def rows(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_pipeline_is_stopped_and_then_reset(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    with RemoteStore(node.addresses["checkpoints"]) as store:
        store.write(f"{PATH}/offsets/0", [b"v1"])
        store.write(f"{PATH}/commits/0", [b"v1"])
    assert ask(node, "stop", "revenue") == ExitCode.REFUSED
    assert "nobody reports about revenue" in capsys.readouterr().err
    with Driver(node.addresses["checkpoints"]) as driver:
        until(lambda: driver.reports > 0, lambda: "no report", seconds_max=10)
        assert ask(node, "reset", "revenue", "--force") == ExitCode.REFUSED
        assert "revenue runs; stop it first" in capsys.readouterr().err
        assert ask(node, "stop", "revenue", "--timeout", "0") == ExitCode.DONE
        assert rows(capsys) == [{"pipeline": "revenue", "state": "running", "batch": 0}]
        assert ask(node, "stop", "--pipeline", "revenue", "--timeout", "1", "-o", "table") == ExitCode.FAILED
        printed = capsys.readouterr()
        assert printed.out == "revenue was asked to stop\n"
        assert "did not stop within 1 second" in printed.err
        driver.heeds = True
        assert ask(node, "stop", "revenue", "-o", "table") in (ExitCode.DONE, ExitCode.REFUSED)
        until(lambda: not driver._thread.is_alive(), lambda: "it runs", seconds_max=10)
    assert ask(node, "stop", "revenue") == ExitCode.REFUSED
    assert "revenue does not run: it has stopped" in capsys.readouterr().err
    assert ask(node, "reset", "revenue", "--to-earliest", "--to-latest") == ExitCode.USAGE
    assert ask(node, "reset", "revenue", "--to-datetime", "soon") == ExitCode.USAGE
    assert ask(node, "reset", "other", "--yes") == ExitCode.REFUSED
    capsys.readouterr()
    assert ask(node, "reset", "revenue", "--to-datetime", "2026-01-31T15:00:00Z", "--yes") == ExitCode.DONE
    assert rows(capsys) == [{"pipeline": "revenue", "reset": True, "start": {"timestamp_ms": 1_769_871_600_000}}]
    with RemoteStore(node.addresses["checkpoints"]) as store:
        assert [each.path for each in store.walk(PATH)] == [f"{PATH}/{FILE}"]
    assert ask(node, "list") == ExitCode.DONE
    assert rows(capsys) == []
    assert ask(node, "reset", "revenue", "--to-latest", "-o", "table") == ExitCode.DONE
    assert capsys.readouterr().out == "Reset 1 pipeline: revenue\n"
