"""What is asked wrongly of `pipelines picture`, `replay` and `state` is told before Spark is started for it."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode

WITHOUT_PYSPARK: Final = """
import sys

sys.modules["pyspark"] = None
from riverlog.cli.main import main

sys.exit(main(["pipelines", *sys.argv[1:]]))
"""


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


@pytest.mark.parametrize(
    "words",
    [
        ("picture", "shop.py"),
        ("picture", "shop.py", "--svg", "shop.svg"),
        ("run", "shop.py"),
        ("replay", "revenue"),
        ("replay", "revenue", "--file", "shop.py"),
        ("state", "revenue"),
    ],
)
def test_without_pyspark_a_sentence_says_how_to_install_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "shop.py").write_text("from riverlog.pipelines import Pipeline")
    command = [sys.executable, "-c", WITHOUT_PYSPARK, *words]
    ran = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60)
    assert ran.stderr == "riverlog: pyspark is not installed; run: pip install 'riverlog[spark]'\n"
    assert ran.returncode == ExitCode.FAILED


@pytest.mark.parametrize("words", [("picture",), ("run",), ("replay", "revenue", "--file")])
def test_a_file_that_is_no_python_is_refused_before_spark_starts(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shop.py").write_text("import sys\nprint(\n")
    monkeypatch.chdir(tmp_path)
    assert main(["pipelines", *words, "shop.py"]) == ExitCode.FAILED
    assert capsys.readouterr().err == "riverlog: shop.py, line 2: '(' was never closed\n"
