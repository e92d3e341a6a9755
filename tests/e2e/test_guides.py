"""The programs of docs/python-client.md and docs/testing-with-pytest.md, run as printed; only the address differs."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.node import Node

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
PROGRAMS: Final = re.findall(
    r"^```python\n(.*?)^```\n(?:\n^```text\n(.*?)^```)?",
    (DOCS / "python-client.md").read_text(),
    re.MULTILINE | re.DOTALL,
)
TESTS: Final = re.findall(
    r"^```python\n(.*?)^```", (DOCS / "testing-with-pytest.md").read_text(), re.MULTILINE | re.DOTALL
)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Node(tmp_path_factory.mktemp("guides")) as node:
        yield node


@pytest.mark.parametrize("place", range(len(PROGRAMS)))
def test_a_program_of_the_client_prints_what_stands_below_it(place: int, node: Node) -> None:
    text, expected = PROGRAMS[place]
    assert "127.0.0.1:9092" in text
    program = text.replace("127.0.0.1:9092", node.bootstrap)
    ran = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout) == (0, expected), ran.stderr


def test_the_tests_of_the_guide_pass(tmp_path: Path) -> None:
    assert len(TESTS) == 2
    for place, text in enumerate(TESTS):
        (tmp_path / f"test_guide_{place}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    ran = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stdout + ran.stderr
