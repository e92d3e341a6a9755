"""What is asked wrongly of `pipelines stop` and `reset`, before a store is asked."""

import pytest

from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode

NOWHERE = ("--store", "127.0.0.1:1")


def test_a_store_that_is_away_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (("stop", "revenue"), ("reset", "revenue", "--yes")):
        assert main(["pipelines", *command, *NOWHERE]) == ExitCode.UNREACHABLE
        assert "no checkpoint store answers at 127.0.0.1:1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("stop",),
        ("stop", "revenue", "--timeout", "-1"),
        ("reset",),
        ("reset", "revenue", "--to-earliest", "--to-datetime", "15:00"),
        ("reset", "revenue", "--to-datetime", "soon"),
    ],
)
def test_what_is_wrong_is_told_before_anybody_is_asked(words: tuple[str, ...]) -> None:
    assert main(["pipelines", *words]) == ExitCode.USAGE
