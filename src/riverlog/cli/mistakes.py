"""What was typed wrongly, as one sentence: what, why, and what to write instead."""

import re
from typing import TYPE_CHECKING, Any

import click

from riverlog.cli import habits
from riverlog.cli.command_table import CliCommand
from riverlog.cli.terminal.exits import CommandError, usage_error
from riverlog.cli.terminal.options import Argument
from riverlog.cli.terminal.suggestions import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable


def usage_mistake(error: click.UsageError, command: CliCommand, program: str) -> CommandError:
    """Return the error for what click could not parse."""
    parameters = command.load().params
    help_page = f"`{program} {command.words} --help` shows what it takes"
    match error:
        case click.NoSuchOption():
            return usage_error(_no_such_option(error.option_name, command, parameters, help_page))
        case click.BadOptionUsage():
            return usage_error(f"{error.option_name} needs a value: {_named(parameters, error.option_name)}")
        case click.MissingParameter():
            example = next((each for each in command.examples if each), "")
            return usage_error(f"{_missing(error.param)}, as in `{program} {command.words} {example}`")
        case click.BadParameter():
            return usage_error(_bad_value(error, command))
        case _:
            extra = re.fullmatch(r"Got unexpected extra arguments? \((.*)\)", error.message)
            what = f"there is no use for '{extra[1]}'" if extra else _sentence(error.message)
            return usage_error(f"{command.words}: {what}; {help_page}")


def _no_such_option(option: str, command: CliCommand, parameters: "Iterable[click.Parameter]", help_page: str) -> str:
    known = [name for each in parameters for name in each.opts if name.startswith("--")]
    hint = habits.of_option(command.words, option)
    if hint is None:
        near = nearest(option, known) if option.startswith("--") else None
        hint = f"did you mean {near}?" if near else help_page
    return f"{command.words} has no option {option}; {hint}"


def _missing(parameter: click.Parameter | None) -> str:
    if isinstance(parameter, Argument):
        return f"{parameter.metavar} is missing: {_sentence(parameter.help)}"
    assert parameter is not None
    return f"{parameter.opts[0]} is missing"


def _bad_value(error: click.BadParameter, command: CliCommand) -> str:
    """Return which values an option takes; click names the given one at the beginning of its message."""
    parameter = error.param
    assert parameter is not None
    given = re.match(r"'(.*?)' is not |(\S+) is not in the range", error.message, re.DOTALL)
    value = (given[2] or given[1]) if given else None
    name = parameter.metavar if isinstance(parameter, Argument) else "/".join(sorted(parameter.opts, key=len))
    if value is not None:
        for option in parameter.opts:
            if hint := habits.of_value(command.words, option, value):
                return f"'{value}' is no value of {option}: {hint}"
    kind = described(parameter.type)
    if kind is None or value is None:
        return f"{name}: {_sentence(error.message)}"
    given_number = f"{float(value):g}" if given and given[2] else value  # click has made it a number already
    return f"{name} takes {kind}, not '{given_number}'"


def described(kind: Any) -> str | None:
    """Return in words what an option takes; None where there is nothing special about it."""
    match kind:
        case click.Choice():
            *others, last = map(str, kind.choices)
            return f"{', '.join(others)} or {last}" if others else last
        case click.IntRange() | click.FloatRange():
            number = "a whole number" if isinstance(kind, click.IntRange) else "a number"
            if kind.min is not None and kind.max is not None:
                return f"{number} from {_plain(kind.min)} to {_plain(kind.max)}"
            return number if kind.min is None else f"{number} of at least {_plain(kind.min)}"
        case click.types.IntParamType():
            return "a whole number"
        case click.types.FloatParamType():
            return "a number"
        case _:
            return None


def _plain(number: float) -> str:
    return f"{number:g}" if number != int(number) else str(int(number))


def _named(parameters: "Iterable[click.Parameter]", option: str) -> str:
    """Return what stands behind an option in the help."""
    metavars: list[Any] = [each.metavar for each in parameters if option in each.opts]
    return metavars[0] if metavars and metavars[0] else "VALUE"


def _sentence(text: str) -> str:
    """Return a sentence as a part of another."""
    text = text.rstrip(".")
    return text[:1].lower() + text[1:]
