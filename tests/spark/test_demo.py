"""What `make demo` runs, twice on one folder."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(1200)  # a JVM takes its time on a machine that has other work

PROGRAM = Path(__file__).parents[2] / "examples" / "revenue.py"


def demo(folder: Path) -> str:
    ran = subprocess.run(
        [sys.executable, str(PROGRAM), "--data", str(folder)], capture_output=True, text=True, timeout=550, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_second_run_goes_on_where_the_first_stopped(tmp_path: Path) -> None:
    first = demo(tmp_path / "data")
    assert "the pipeline is new: it starts with the first order" in first
    assert "sent 3,000 orders, hour 1 since the opening" in first
    assert "2026-03-02 09:30" in first
    assert "Pipeline revenue: State=stopped" in first
    assert "Group revenue: Empty, lag 0" in first
    second = demo(tmp_path / "data")
    assert "the pipeline goes on where it stopped, after batch" in second
    assert "3,000 orders wait" in second
    assert "2026-03-02 10:30" in second
    assert "each once" in second
