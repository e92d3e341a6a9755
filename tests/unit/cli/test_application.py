"""One command as an application of its own."""

import pytest

from riverlog.cli.application import application
from riverlog.cli.commands import Command


def test_arguments_are_read_by_the_signature() -> None:
    seen = []

    def greet(name: str, count: int = 1) -> None:
        seen.append((name, count))

    app = application(Command("greet", "", "", "Greet.", ()), greet)
    app(["Ada", "--count", "2"], standalone_mode=False)
    assert seen == [("Ada", 2)]


def test_a_wrong_argument_ends_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    app = application(Command("greet", "", "", "Greet.", ()), lambda: None)
    with pytest.raises(SystemExit) as end:
        app(["--loud"], prog_name="riverlog greet")
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("Usage: riverlog greet")
