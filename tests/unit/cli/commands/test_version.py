"""`version`."""

import json
import platform

import pytest

from riverlog import __version__
from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_the_version_is_a_sentence(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == ExitCode.DONE
    assert capsys.readouterr().out.startswith(f"riverlog {__version__} (Python {platform.python_version()}, ")


def test_the_version_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "-o", "json"]) == ExitCode.DONE
    assert json.loads(capsys.readouterr().out)["riverlog"] == __version__
