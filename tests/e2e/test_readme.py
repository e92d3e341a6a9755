"""The README's five minutes, run as printed; only the addresses differ."""

import subprocess
import sys
from pathlib import Path

from tests.support.node import Node
from tests.support.printed import Walk, blocks
from tests.support.readme import EXPECTED, usual_addresses, walk


def test_the_five_minutes(tmp_path: Path) -> None:
    with Node(tmp_path, settings={"checkpoints.port": "0"}) as node:
        done = walk(Walk(tmp_path, usual_addresses(node)), "Five minutes")
    spark = {"riverlog topics create sales", "import riverlog.spark", "riverlog consume revenue"}
    assert done | {"kcat "} == set(EXPECTED) - spark


def test_its_test_passes(tmp_path: Path) -> None:
    (block,) = (each for each in blocks("README.md", "Five minutes") if "riverlog_broker" in each.text)
    (tmp_path / "test_orders.py").write_text(block.text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_orders.py"]
    ran = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 passed" in ran.stdout
