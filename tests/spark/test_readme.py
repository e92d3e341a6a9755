"""The README's pipeline, run as printed; only the addresses differ."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import riverlog
from tests.e2e.clients import create_topic, send
from tests.support.node import Node

pytestmark = pytest.mark.timeout(1200)  # a JVM takes its time on a machine that has other work

README = (Path(__file__).parents[2] / "README.md").read_text()
SECTION = README.partition("## Pipelines on Spark")[2].partition("\n## ")[0]
PROGRAM, COMMANDS = re.findall(r"^```\w*\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)


def test_the_pipeline_and_the_commands_behind_it(node: Node) -> None:
    create_topic(node.bootstrap, "sales", partitions=2)
    create_topic(node.bootstrap, "revenue")
    for minute in (0, 3, 12, 45):
        sale = {"shop": "Oslo", "cents": 100 + minute, "at": f"2026-03-02T09:{minute:02}:00Z"}
        send(node.bootstrap, "sales", [json.dumps(sale).encode()], partition=minute % 2)
    here = PROGRAM.replace("127.0.0.1:9092", node.bootstrap).replace(
        "webhdfs://127.0.0.1:9870", node.addresses["checkpoints"]
    )
    ran = subprocess.run([sys.executable, "-c", here], capture_output=True, text=True, timeout=550, check=False)
    assert ran.returncode == 0, ran.stderr
    values = riverlog.scan("revenue", bootstrap=node.bootstrap).to_arrow().column("value").to_pylist()
    assert sorted(json.loads(value)["cents"] for value in values) == [112, 203]
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "RIVERLOG_BOOTSTRAP_SERVERS": node.bootstrap,
        "RIVERLOG_CHECKPOINTS": node.addresses["checkpoints"],
    }
    said = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", COMMANDS],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    assert "Pipeline revenue: State=stopped" in said.stdout
    assert '"lag": 0' in said.stdout
