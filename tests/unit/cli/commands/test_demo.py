"""The examples: which there are, which can be run, and what is missing for one."""

import json
from pathlib import Path

import pytest

from riverlog.cli.commands import demo
from riverlog.cli.commands.demo import STORIES, examples
from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode


def test_every_example_is_listed_with_how_to_run_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--list"]) == ExitCode.DONE
    rows = {row["example"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert set(rows) == {path.stem for path in examples().glob("*.py")}
    assert STORIES.keys() <= set(rows)
    assert rows["invoices"]["run with"] == "riverlog demo invoices"
    assert rows["visits"]["run with"] == "riverlog pipelines run visits.py"
    assert all(row["shows"].endswith(".") for row in rows.values())


def test_examples_are_copied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--copy", str(tmp_path / "mine")]) == ExitCode.DONE
    copied = sorted(path.name for path in (tmp_path / "mine").iterdir())
    assert copied == sorted(path.name for path in examples().glob("*.py"))
    assert capsys.readouterr().out == f"Copied {len(copied)} examples to {tmp_path}/mine\n"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("demo revenu", "there is no example revenu; did you mean 'revenue'?"),
        ("demo xyz", "there is no example xyz; --list shows what there is"),
        ("demo visits", "visits is a pipeline for your own topics; --copy DIR copies it"),
        ("demo invoices --data x", "--data is for revenue: invoices keeps nothing"),
    ],
)
def test_mistakes_are_one_sentence(line: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == ExitCode.USAGE
    assert capsys.readouterr().err.startswith(f"riverlog: {sentence}")


def test_what_is_missing_is_named_with_the_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "_is_there", lambda _module: False)
    assert main(["demo", "revenue"]) == ExitCode.FAILED
    expected = "riverlog: revenue needs pyspark, which is not installed; pip install 'riverlog[spark]'\n"
    assert capsys.readouterr().err == expected
