"""What is asked wrongly of `pipelines picture`, `replay` and `state` is told before Spark is started for it."""

import pytest

from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode


@pytest.mark.parametrize(
    "words",
    [
        ("replay", "revenue", "--batch", "-1"),
        ("replay", "revenue", "--file", "missing.py"),
        ("replay",),
        ("state", "revenue", "--limit", "0"),
        ("picture", "missing.py"),
        ("picture",),
    ],
)
def test_what_is_wrong_is_told_before_anybody_is_asked(words: tuple[str, ...]) -> None:
    assert main(["pipelines", *words]) == ExitCode.USAGE


@pytest.mark.parametrize("words", [("state", "revenue"), ("replay", "revenue")])
def test_a_store_that_is_away_is_named(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipelines", *words, "--store", "127.0.0.1:1"]) == ExitCode.UNREACHABLE
    assert "no checkpoint store answers at 127.0.0.1:1" in capsys.readouterr().err
