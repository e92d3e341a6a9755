"""`riverlog verify` against a real node that is killed meanwhile: nothing is lost, and nothing is left behind."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.node import Node
from tests.support.waiting import until

PROGRAM: Final = Path(sys.executable).with_name("riverlog")
SECONDS_MAX: Final = 120.0


def listed(node: Node, *words: str) -> bytes:
    return subprocess.run([PROGRAM, *words, "-b", node.bootstrap], capture_output=True, check=True).stdout


def written_bytes(node: Node) -> int:
    return sum(path.stat().st_size for path in node.data.glob("riverlog-verify-*/*.log"))


def wait_for_bytes(node: Node, size: int) -> None:
    until(lambda: written_bytes(node) >= size, lambda: "nothing is written", seconds_max=SECONDS_MAX)


def verifying(node: Node) -> "subprocess.Popen[bytes]":
    options = ["--seconds", "6", "--consumers", "2", "-o", "json"]
    return subprocess.Popen([PROGRAM, "verify", "-b", node.bootstrap, *options], stdout=subprocess.PIPE)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_node_that_is_killed_meanwhile_keeps_its_promises(tmp_path: Path, durability: str) -> None:
    with Node(tmp_path, settings={"durability": durability, "metrics.port": "0"}) as node:
        running = verifying(node)
        for _ in range(3):
            wait_for_bytes(node, written_bytes(node) + 50_000)
            node.kill()
            node.start()
        row = json.loads(running.communicate(timeout=SECONDS_MAX)[0])
        assert (running.returncode, row["anomalies"], row["unfinished"]) == (0, {}, [])
        assert row["clean"] is True
        assert row["acknowledged"] > 500
        assert listed(node, "topics", "list") == b""
        assert listed(node, "groups", "list") == b""


@pytest.mark.timeout(180)
def test_a_log_that_is_cut_behind_the_back_of_its_node_is_noticed(tmp_path: Path) -> None:
    with Node(tmp_path, settings={"metrics.port": "0"}) as node:
        running = verifying(node)
        wait_for_bytes(node, 300_000)
        node.kill()
        log = max(node.data.glob("riverlog-verify-*/*.log"), key=lambda path: path.stat().st_size)
        with log.open("r+b") as file:
            file.truncate(log.stat().st_size // 2)
        node.start()
        row = json.loads(running.communicate(timeout=SECONDS_MAX)[0])
        assert (running.returncode, row["clean"]) == (5, False)
        assert row["anomalies"]["lost"] > 10
        assert f"at {log.parent.name}@" in row["examples"]["lost"][0]
        assert listed(node, "topics", "list") == b""


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_leaves_nothing_behind(tmp_path: Path, signal_number: signal.Signals) -> None:
    with Node(tmp_path, settings={"metrics.port": "0"}) as node:
        running = verifying(node)
        wait_for_bytes(node, 20_000)
        running.send_signal(signal_number)
        assert running.communicate(timeout=SECONDS_MAX) == (b"", None)
        assert running.returncode == 130
        assert listed(node, "topics", "list") == b""
        assert listed(node, "groups", "list") == b""
