"""What is wrong is said before Spark is started for it."""

from pathlib import Path

import pytest

from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "revenue.py"
    path.write_text("")
    return str(path)


def test_a_file_that_is_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipelines", "run", str(tmp_path / "missing.py")]) == ExitCode.USAGE
    assert "missing.py; name one that defines a Pipeline" in capsys.readouterr().err


def test_a_trigger_is_a_time_or_what_is_there(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipelines", "run", file, "--trigger", "soon"]) == ExitCode.USAGE
    assert "or available-now" in capsys.readouterr().err


def test_a_broker_that_is_down_is_found_at_once(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipelines", "run", file, "-b", "127.0.0.1:1"]) == ExitCode.UNREACHABLE
    assert "riverlog doctor" in capsys.readouterr().err
