"""The README's pipeline, run as printed on an empty node; only the addresses differ."""

from pathlib import Path

import pytest

from tests.support.node import Node
from tests.support.printed import Walk
from tests.support.readme import usual_addresses, walk


@pytest.mark.timeout(1200)  # a JVM takes its time on a machine that has other work
def test_the_pipeline_and_the_commands_around_it(tmp_path: Path) -> None:
    with Node(tmp_path, settings={"checkpoints.port": "0"}) as node:
        done = walk(Walk(tmp_path, usual_addresses(node), seconds_max=550), "Pipelines on Spark")
    assert done == {"riverlog topics create sales", "import riverlog.spark", "riverlog consume revenue"}
