"""The README's five minutes, run as printed; only the address differs."""

import asyncio
import inspect
import os
import re
import shutil
import subprocess
import sys
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.node import Node

README: Final = (Path(__file__).resolve().parents[2] / "README.md").read_text()
FIVE_MINUTES: Final = README.partition("## Five minutes")[2].partition("\n## ")[0]
BLOCKS: Final = re.findall(r"^```(\w*)\n(.*?)^```", FIVE_MINUTES, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Node(tmp_path_factory.mktemp("readme")) as node:
        yield node


def shell(script: str, node: Node) -> str:
    """Run the lines of a block in a shell that finds our command; any that fails fails the test."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "RIVERLOG_BOOTSTRAP_SERVERS": node.bootstrap}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def python(source: str) -> str:
    """Run a script in a Python of its own."""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def at_a_notebook(source: str) -> None:
    """Run a cell as a notebook does: `await` works at its top level."""
    code = compile(source, "README.md", "exec", flags=PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, {})
    if inspect.iscoroutine(result):
        asyncio.run(result)


def test_the_five_minutes(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    done = []
    for language, printed in BLOCKS:
        block = printed.replace("127.0.0.1:9092", node.bootstrap)
        if "kcat" in block:
            if shutil.which("kcat"):
                assert "linus -> 2 desks" in shell(block, node)
                done.append("kcat")
        elif "confluent_kafka" in block:
            assert python(block).startswith("b'")
            done.append("confluent-kafka")
        elif "from kafka" in block:
            assert python(block).count("b'ada'") >= 3
            done.append("kafka-python")
        elif "aiokafka" in block:
            assert "RecordMetadata(topic='orders'" in python(block)
            done.append("aiokafka")
        elif "transactional_id" in block:
            at_a_notebook(block)
            assert "1 lamp" in shell("riverlog consume invoices --from-beginning -e", node)
            done.append("transactions")
        elif "riverlog.scan(" in block:
            assert "value: binary" in python(block.replace("riverlog.scan", "print(riverlog.scan").rstrip() + ")")
            done.append("scan")
        elif "from riverlog" in block:
            at_a_notebook(block)
            assert "b'1 lamp'" in capsys.readouterr().out
            done.append("riverlog")
        elif "riverlog_broker" in block:
            compile(block, "README.md", "exec")  # test_testing.py uses the fixture
        else:
            assert language == ""
            output = shell(block, node)
            if "riverlog groups" in block:
                assert "Group billing: State=Empty" in output
                done.append("groups")
            else:
                assert "2 lamps" in output
                assert "Partition 2: Leader=1, ISR=[1]" in output
                done.append("command line")
    wanted = {
        "command line",
        "groups",
        "confluent-kafka",
        "kafka-python",
        "aiokafka",
        "riverlog",
        "scan",
        "transactions",
    }
    assert wanted <= set(done)
