"""The README's five minutes, run as printed; only the addresses differ. test_testing.py uses the fixture."""

from pathlib import Path

from tests.support.node import Node
from tests.support.printed import Walk
from tests.support.readme import EXPECTED, usual_addresses, walk


def test_the_five_minutes(tmp_path: Path) -> None:
    with Node(tmp_path, settings={"checkpoints.port": "0"}) as node:
        done = walk(Walk(tmp_path, usual_addresses(node)), "Five minutes")
    spark = {"riverlog topics create sales", "import riverlog.spark", "riverlog consume revenue"}
    assert done | {"kcat "} == set(EXPECTED) - spark
