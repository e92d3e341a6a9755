"""`riverlog verify` against a real node that is killed meanwhile: nothing is lost, and nothing is left behind."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from tests.support.node import Node

PROGRAM: Final = Path(sys.executable).with_name("riverlog")
SECONDS_MAX: Final = 120.0


def listed(node: Node, *words: str) -> bytes:
    return subprocess.run([PROGRAM, *words, "-b", node.bootstrap], capture_output=True, check=True).stdout


def written_bytes(node: Node) -> int:
    return sum(path.stat().st_size for path in node.data.glob("riverlog-verify-*/*.log"))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_node_that_is_killed_meanwhile_keeps_its_promises(tmp_path: Path, durability: str) -> None:
    options = ["--seconds", "6", "--consumers", "2", "-o", "json"]
    with Node(tmp_path, settings={"durability": durability, "metrics.port": "0"}) as node:
        running = subprocess.Popen([PROGRAM, "verify", "-b", node.bootstrap, *options], stdout=subprocess.PIPE)
        for _ in range(3):
            before = written_bytes(node)
            deadline = time.monotonic() + SECONDS_MAX
            while written_bytes(node) < before + 50_000:
                assert time.monotonic() < deadline, "nothing is written"
                time.sleep(0.02)
            node.kill()
            node.start()
        out, _ = running.communicate(timeout=SECONDS_MAX)
        row = json.loads(out)
        assert (running.returncode, row["anomalies"], row["unfinished"]) == (0, {}, [])
        assert row["clean"] is True
        assert row["acknowledged"] > 500
        assert row["errors"], "the node was killed, and nobody noticed"
        assert listed(node, "topics", "list") == b""
        assert listed(node, "groups", "list") == b""
