"""Exit codes: each has a meaning, and the document lists them all."""

from pathlib import Path

from riverlog.cli.terminal.exits import MEANINGS, CommandError, ExitCode, usage_error

DOCUMENT = Path(__file__).resolve().parents[4] / "docs" / "cli.md"


def test_every_exit_code_has_a_meaning() -> None:
    assert list(MEANINGS) == list(ExitCode)


def test_the_document_has_the_table() -> None:
    rows = "".join(f"| {code.value} | {meaning} |\n" for code, meaning in MEANINGS.items())
    assert f"| Code | Meaning |\n|---|---|\n{rows}" in DOCUMENT.read_text(encoding="utf-8")


def test_trouble_is_a_failure_unless_it_says_otherwise() -> None:
    assert CommandError("x").exit_code is ExitCode.FAILED
    assert usage_error("x").exit_code is ExitCode.USAGE
