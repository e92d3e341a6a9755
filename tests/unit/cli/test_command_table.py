"""The table of commands."""

import inspect

import click
import pytest

from riverlog.cli.command_table import COMMAND_BY_WORDS, COMMANDS, GROUPS, Command


def test_no_two_commands_have_the_same_words() -> None:
    assert len(COMMAND_BY_WORDS) == len(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_a_command_is_where_the_table_says(command: Command) -> None:
    assert isinstance(command.load(), click.Command)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_a_function_takes_what_its_decorators_declare_in_their_order(command: Command) -> None:
    loaded = command.load()
    assert loaded.callback is not None
    assert [each.name for each in loaded.params] == list(inspect.signature(loaded.callback).parameters)


def test_a_group_has_commands_and_is_none_itself() -> None:
    groups = {command.words.rpartition(" ")[0] for command in COMMANDS} - {""}
    used = groups | {group.split()[0] for group in groups}
    assert used == set(GROUPS)
    assert not used & set(COMMAND_BY_WORDS)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_examples_are_of_this_command(command: Command) -> None:
    assert command.examples
    for example in command.examples:
        assert example == command.words or example.startswith(f"{command.words} ")
