"""The table of commands."""

import inspect

import click
import pytest

from riverlog.cli.command_table import COMMAND_BY_WORDS, COMMANDS, GROUPS, CliCommand


def test_no_two_commands_have_the_same_words() -> None:
    assert len(COMMAND_BY_WORDS) == len(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_a_command_is_where_the_table_says(command: CliCommand) -> None:
    assert isinstance(command.load(), click.Command)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_a_function_takes_what_its_decorators_declare_in_their_order(command: CliCommand) -> None:
    loaded = command.load()
    assert loaded.callback is not None
    assert folded([each.name for each in loaded.params]) == list(inspect.signature(loaded.callback).parameters)


def folded(declared: list[str | None]) -> list[str | None]:
    """Name parameters as a function takes them: a name from either place, and the options of a cluster as one."""
    names = [name for name in declared if name not in ("name_option", "names_option")]
    if {"bootstrap", "profile", "settings", "output"} <= set(names):
        names[names.index("bootstrap") : names.index("output") + 1] = ["cluster"]
    return names


def test_a_group_has_commands_and_is_none_itself() -> None:
    groups = {command.words.rpartition(" ")[0] for command in COMMANDS} - {""}
    used = groups | {group.split()[0] for group in groups}
    assert used == set(GROUPS)
    assert not used & set(COMMAND_BY_WORDS)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_a_command_has_examples_without_its_words(command: CliCommand) -> None:
    assert command.examples
    assert not any(example.startswith(command.words) for example in command.examples)
