"""The tally counts what happened, and a pending test that passes does not go unseen."""

import subprocess
import sys
from pathlib import Path

from tests.conformance.tally import Tally

TESTS = """
import pytest

def test_good(): pass
def test_bad(): assert False
def test_late(): assert False
def test_early(): pass
@pytest.mark.parametrize("number", [1, 2])
def test_both_late(number): assert False
@pytest.mark.skip(reason="no such library")
def test_missing(): pass
@pytest.mark.skip(reason="Requires KAFKA_VERSION < 0.10")
def test_of_the_past(): pass
@pytest.fixture
def broken(): raise RuntimeError
def test_without_its_fixture(broken): pass
"""


def run(folder: Path, pending: str) -> tuple[int, Tally]:
    (folder / "test_sample.py").write_text(TESTS)
    (folder / "pending.txt").write_text(pending)
    plugin = ["-p", "tests.conformance.tally", "--tally=tally.json", "--pending=pending.txt"]
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *plugin, "test_sample.py"]
    ended = subprocess.run(command, cwd=folder, env={"PYTHONPATH": str(root)}, capture_output=True).returncode
    return ended, Tally.read(folder / "tally.json")


def test_outcomes_are_told_apart(tmp_path: Path) -> None:
    listed = "# a comment\ntest_late  waits\ntest_early  waits\ntest_both_late  waits\n"
    ended, tally = run(tmp_path, listed)
    assert ended == 1
    assert tally.named("passed") == ["test_sample.py::test_good"]
    assert tally.named("failed") == ["test_sample.py::test_bad", "test_sample.py::test_without_its_fixture"]
    assert tally.count("pending") == 3
    assert tally.named("passed though pending") == ["test_sample.py::test_early"]
    assert tally.reasons() == {"no such library"}
    assert len(tally.outcomes) == 8


def test_the_list_of_pending_tests_names_only_tests(tmp_path: Path) -> None:
    ended, tally = run(tmp_path, "test_gone  waits\n")
    assert ended == 4
    assert tally.outcomes == {}
