"""Help pages: what is shipped is what the signatures say, and says it all."""

import re
from pathlib import Path

import click
import pytest

from riverlog.cli.command_table import COMMAND_BY_WORDS, COMMANDS, GROUPS, CliCommand
from riverlog.cli.help import MANUAL, SECTIONS, WIDTH, file_name, make_page, page
from riverlog.cli.terminal.options import Argument


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_the_shipped_page_is_current(command: CliCommand) -> None:
    assert Path(MANUAL, file_name(command)).read_text(encoding="utf-8") == make_page(command), (
        "run `python -m riverlog.cli.help`"
    )


def test_no_page_is_left_over() -> None:
    assert {path.name for path in Path(MANUAL).iterdir()} == {file_name(command) for command in COMMANDS}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_a_page_says_it_all(command: CliCommand) -> None:
    loaded = command.load()
    assert loaded.help is not None
    assert loaded.help.splitlines()[0] == f"{command.summary}."
    text = page("riverlog", command)
    assert "$PROGRAM" not in text
    assert max(len(line) for line in text.splitlines()) <= WIDTH
    for parameter in loaded.params:
        assert isinstance(parameter, Argument | click.Option), f"{parameter.name} cannot be explained"
        assert parameter.help, f"{parameter.name} has no help"
        if not getattr(parameter, "is_flag", False):
            assert parameter.metavar, f"{parameter.name} has no metavar"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_a_page_has_short_sentences(command: CliCommand) -> None:
    loaded = command.load()
    paragraphs = [" ".join(text.split()) for text in (loaded.help or "").split("\n\n")]
    paragraphs += [str(getattr(parameter, "help", "")) for parameter in loaded.params]
    sentences = [sentence for text in paragraphs for sentence in re.split(r"(?<=[.:;?])\s", text)]
    assert [sentence for sentence in sentences if len(sentence.split()) > 25 and "%t" not in sentence] == []


def test_every_command_is_in_one_section() -> None:
    listed = [word for words in SECTIONS.values() for word in words]
    assert sorted(listed) == sorted({words.split()[0] for words in (*GROUPS, *COMMAND_BY_WORDS)})


def test_a_node_is_not_connected_to() -> None:
    for words in ("dev", "serve"):
        text = page("riverlog", COMMAND_BY_WORDS[words])
        assert "--set NAME=VALUE" in text
        assert "Connection:" not in text
