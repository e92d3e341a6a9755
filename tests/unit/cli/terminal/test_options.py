"""Options that commands share, and arguments that explain themselves."""

import click
import pytest

from riverlog.cli.terminal.options import (
    Argument,
    bootstrap_option,
    client_settings_option,
    output_option,
    text_output_option,
)
from riverlog.cli.terminal.render import OutputFormat


def given(*arguments: str) -> tuple[str | None, tuple[str, ...], OutputFormat | None]:
    """Read a command line with all shared options."""

    @click.command
    @bootstrap_option
    @client_settings_option
    @output_option
    def command(
        bootstrap: str | None, settings: tuple[str, ...], output: OutputFormat | None
    ) -> tuple[str | None, tuple[str, ...], OutputFormat | None]:
        return bootstrap, settings, output

    seen: tuple[str | None, tuple[str, ...], OutputFormat | None] = command(arguments, standalone_mode=False)
    return seen


def test_brokers_are_named_by_either_option() -> None:
    assert given() == (None, (), None)
    assert given("-b", "flag:2")[0] == "flag:2"
    assert given("--bootstrap-server", "flag:2")[0] == "flag:2"


def test_settings_may_be_repeated() -> None:
    assert given("-X", "a=1", "-X", "b=2")[1] == ("a=1", "b=2")


@pytest.mark.parametrize("form", OutputFormat)
def test_an_output_is_a_format(form: OutputFormat) -> None:
    assert given("-o", form.value)[2] is form
    assert given("--output", form.value)[2] is form


def test_what_is_no_format_is_refused_with_those_that_are() -> None:
    with pytest.raises(click.BadParameter, match="'xml' is not one of 'table', 'json', 'yaml'"):
        given("-o", "xml")


@pytest.mark.parametrize("option", [output_option, text_output_option])
def test_the_help_names_every_format(option: object) -> None:
    assert callable(option)
    (parameter,) = click.command(option(lambda output: None)).params
    assert parameter.metavar == "|".join(OutputFormat)


@pytest.mark.parametrize(
    ("attributes", "usage"),
    [
        ({}, "NAME"),
        ({"required": False}, "[NAME]"),
        ({"nargs": -1, "required": True}, "NAME…"),
        ({"nargs": -1}, "[NAME…]"),
    ],
)
def test_an_argument_says_whether_it_is_needed_and_may_be_repeated(attributes: dict[str, object], usage: str) -> None:
    argument = Argument(["name"], metavar="NAME", help="A name.", **attributes)
    assert argument.help == "A name."
    assert argument.usage == usage
    command = click.Command("greet", params=[argument])
    assert command.get_usage(click.Context(command, info_name="greet")) == f"Usage: greet [OPTIONS] {usage}"
