"""The note of what was not run: each reason with its count, over several processes."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.support.not_run import LONG_FORMS, SLOW, VARIABLE

ROOT: Final = Path(__file__).resolve().parents[3]
TESTS: Final = """
import pytest

@pytest.mark.skipif(True, reason="kcat is not installed")
@pytest.mark.parametrize("number", range(3))
def test_skipped(number):
    pass

@pytest.mark.skipif(True, reason="only root can mount")
def test_skipped_for_another_reason():
    pass

@pytest.mark.slow
def test_slow():
    assert False

@pytest.mark.xfail
def test_expected_to_fail():
    assert False

def test_run():
    pass
"""


def test_what_two_processes_left_out_is_told_by_reason(tmp_path: Path) -> None:
    suite, notes = tmp_path / "suite", tmp_path / "notes"
    suite.mkdir()
    (suite / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (suite / "pytest.ini").write_text("[pytest]\nmarkers = slow: takes minutes\n")
    environment = os.environ | {VARIABLE: str(notes), "PYTHONPATH": str(ROOT)}
    (suite / "test_both.py").write_text(TESTS)
    for _ in range(2):
        command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", str(suite)]
        ran = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    command = [sys.executable, "-m", "tests.support.not_run", str(notes)]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60).stdout
    assert told.splitlines()[0] == "not run:"
    assert told.splitlines()[1] == "  6 tests: kcat is not installed"
    assert set(told.splitlines()[2:4]) == {"  2 tests: only root can mount", f"  2 tests: {SLOW}"}
    assert told.splitlines()[4:] == [f"  {each}" for each in LONG_FORMS]
