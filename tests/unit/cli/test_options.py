"""Options that commands share."""

from typing import Annotated, get_args

import pytest

from riverlog.cli.application import application
from riverlog.cli.commands import Command
from riverlog.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, ClientSettings, Output, TextOutput
from riverlog.cli.render import OutputFormat

COMMAND = Command("try", "", "", "Try.", ())


def given(*arguments: str) -> tuple[str, list[str] | None, OutputFormat | None]:
    """Read a command line with all shared options."""
    seen = []

    def command(
        bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, settings: ClientSettings = None, output: Output = None
    ) -> None:
        seen.append((bootstrap, settings, output))

    application(COMMAND, command)(arguments, standalone_mode=False)
    return seen[0]


def test_without_options_the_local_broker_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RIVERLOG_BOOTSTRAP_SERVERS", raising=False)
    assert given() == ("127.0.0.1:9092", None, None)


def test_a_flag_wins_over_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIVERLOG_BOOTSTRAP_SERVERS", "variable:1")
    assert given()[0] == "variable:1"
    assert given("-b", "flag:2")[0] == "flag:2"
    assert given("--bootstrap-server", "flag:2")[0] == "flag:2"


def test_settings_may_be_repeated_and_an_output_is_one_of_three() -> None:
    assert given("-X", "a=1", "-X", "b=2", "-o", "yaml")[1:] == (["a=1", "b=2"], OutputFormat.YAML)


@pytest.mark.parametrize("option", [Output, TextOutput])
def test_the_help_names_every_format(option: Annotated[object, ...]) -> None:
    assert get_args(option)[1].metavar == "|".join(OutputFormat)
