"""What was typed wrongly is one sentence; the transcripts hold most of them."""

import click
import pytest

from riverlog.cli.main import main
from riverlog.cli.mistakes import described
from riverlog.cli.terminal.exits import ExitCode


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (click.IntRange(0), "a whole number of at least 0"),
        (click.IntRange(1, 9), "a whole number from 1 to 9"),
        (click.IntRange(max=9), "a whole number"),
        (click.FloatRange(0.1), "a number of at least 0.1"),
        (click.Choice(["a", "b", "c"]), "a, b or c"),
        (click.Choice(["a"]), "a"),
        (click.INT, "a whole number"),
        (click.FLOAT, "a number"),
        (click.STRING, None),
    ],
)
def test_types_are_described_in_words(kind: object, words: str | None) -> None:
    assert described(kind) == words


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("version --frobnicate", "version has no option --frobnicate; `riverlog version --help` shows what it takes"),
        ("consume orders --ofset 3", "consume has no option --ofset; did you mean --offset?"),
        ("consume orders --offset", "--offset needs a value: N|-N|beginning|end"),
        ("version now", "version: there is no use for 'now'; `riverlog version --help` shows what it takes"),
        ("log dump", "PATH is missing: segments, indexes, snapshots"),
        ("produce x --acks 7", "--acks takes 0, 1 or all, not '7'"),
        ("produce x -p no", "-p/--partition takes a whole number from 0 to 2147483647, not 'no'"),
        ("version --output=", "-o/--output takes table, json or yaml, not ''"),
        ("topics list -o xml", "-o/--output takes table, json or yaml, not 'xml'"),
    ],
)
def test_one_sentence_without_clicks_usage(line: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"riverlog: {sentence}")
