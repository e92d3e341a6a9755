"""Hints for habits: what they advise is there, and what they answer to is not."""

import re

import pytest

from riverlog.cli.command_table import COMMAND_BY_WORDS, COMMANDS, GROUPS
from riverlog.cli.habits import COMMANDS as MEANT
from riverlog.cli.habits import OPTIONS, VALUES, of_option, of_value


def options_of(words: str) -> set[str]:
    return {name for each in COMMAND_BY_WORDS[words].load().params for name in each.opts}


@pytest.mark.parametrize("words", MEANT)
def test_a_word_of_others_leads_to_a_command(words: str) -> None:
    assert words not in COMMAND_BY_WORDS
    command, _, option = MEANT[words].partition(" --")
    assert command in COMMAND_BY_WORDS or command in GROUPS
    assert not option or f"--{option}" in options_of(command)


@pytest.mark.parametrize("place", [place for place in OPTIONS if place])
def test_hints_belong_to_a_command_or_group(place: str) -> None:
    assert place in COMMAND_BY_WORDS or place in GROUPS


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_an_option_that_is_advised_is_there(command: object) -> None:
    words = command.words  # type: ignore[attr-defined]
    for option in (*OPTIONS.get(words, {}), *(OPTIONS.get("", {}) if words == "consume" else ())):
        hint = of_option(words, option)
        assert hint is not None
        for advised in re.findall(r"(?<![\w`-])(--?[a-zA-Z][\w-]*)", re.sub(r"`[^`]*`", "", hint)):
            assert advised in options_of(words), f"{words} {option}: {advised}"


def test_a_command_that_is_said_twice() -> None:
    assert of_option("topics create", "--create") == "leave it out, the command says it already"
    assert of_option("topics create", "--list") == "`topics list` lists topics"


@pytest.mark.parametrize(("command", "option", "value"), VALUES)
def test_a_value_for_another_option(command: str, option: str, value: str) -> None:
    assert option in options_of(command)
    assert "--" in str(of_value(command, option, value))


def test_an_offset_for_the_output() -> None:
    assert of_value("consume", "-o", "-5") == "-o chooses json or yaml; --offset -5 says where to start"
    assert of_value("consume", "-o", "xml") is None
