"""Help: lists rendered from the command table, and one page per command.

Pages come from the options that a command declares, and reading those means loading click and the command; so they
are made beforehand: `python -m riverlog.cli.help` writes `manual/`, a test compares it with the declarations, and
`--help` prints a file.
"""

import os.path
from collections.abc import Iterable
from textwrap import fill, indent, wrap
from typing import TYPE_CHECKING, Final

from riverlog.cli.command_table import COMMANDS, GROUPS, CliCommand
from riverlog.cli.terminal.exits import MEANINGS

if TYPE_CHECKING:
    import click

WIDTH: Final = 79
LEFT_WIDTH_MAX: Final = 26
MANUAL: Final = os.path.join(os.path.dirname(__file__), "manual")
ORIGIN: Final = "Made by `python -m riverlog.cli.help` from the command's signature; do not edit.\n"
PROGRAM: Final = "$PROGRAM"

SECTIONS: Final = {
    "Run a broker": ("dev", "serve", "storage", "demo"),
    "Topics and records": ("topics", "produce", "consume", "scan", "bench", "verify"),
    "Consumer groups": ("groups", "lag"),
    "Transactions": ("transactions",),
    "Pipelines": ("pipelines",),
    "Look inside": ("cluster", "log", "doctor", "config", "profile", "completion", "version"),
}


def overview(program: str) -> str:
    """Render what the program says without a command."""
    summaries = GROUPS | {command.words: command.summary for command in COMMANDS}
    blocks = [
        f"Usage: {program} COMMAND [OPTIONS]\n",
        "An event streaming broker that any Kafka client can use, with its tools.\n",
    ]
    for section, words in SECTIONS.items():
        blocks.append(f"{section}:\n" + _columns((word, summaries[word]) for word in words))
    blocks += [
        *_prose(
            f"Every command explains itself: `{program} topics create --help`. -b HOST:PORT names the cluster; without "
            "it RIVERLOG_BOOTSTRAP_SERVERS does, or the profile in use, or it is 127.0.0.1:9092. Tables become JSON "
            "lines in a pipe; -o table|json|yaml chooses. NO_COLOR switches colours off."
        ),
        exit_codes(),
    ]
    return "\n".join(blocks)


def group(program: str, name: str) -> str:
    """Render the list of a group's commands."""
    below = GROUPS | {command.words: command.summary for command in COMMANDS}
    members = {words: text for words, text in below.items() if words.rpartition(" ")[0] == name}
    first = next(command for command in COMMANDS if command.words.startswith(f"{name} "))
    return "\n".join(
        [
            f"Usage: {program} {name} COMMAND [OPTIONS]\n",
            f"{GROUPS[name]}.\n",
            "Commands:\n" + _columns((words.rpartition(" ")[2], text) for words, text in members.items()),
            f"`{program} {first.words} --help` explains one.\n",
        ]
    )


def page(program: str, command: CliCommand) -> str:
    """Read the page of a command."""
    with open(os.path.join(MANUAL, file_name(command)), encoding="utf-8") as file:
        return file.read().removeprefix(ORIGIN).replace(PROGRAM, program)


def exit_codes() -> str:
    """Render the table of exit codes."""
    return "Exit codes:\n" + _columns((str(code.value), meaning) for code, meaning in MEANINGS.items())


def file_name(command: CliCommand) -> str:
    """Name the page of a command."""
    return command.words.replace(" ", "-") + ".txt"


def make_page(command: CliCommand) -> str:
    """Render a command's page from its declarations."""
    import click

    from riverlog.cli.terminal.options import CONNECTION, Argument

    loaded = command.load()
    arguments = [each for each in loaded.params if isinstance(each, Argument)]
    options = [each for each in loaded.params if isinstance(each, click.Option)]
    usage = " ".join([f"Usage: {PROGRAM} {command.words} [OPTIONS]", *(each.usage for each in arguments)])
    blocks = [usage + "\n", *_prose(loaded.help or "")]
    if arguments:
        blocks.append("Arguments:\n" + _columns((each.metavar, each.help) for each in arguments))
    own = [each for each in options if not CONNECTION & {*each.opts}]
    blocks.append("Options:\n" + _columns([*map(_option_row, own), ("-h, --help", "Show this page.")]))
    if connection := [each for each in options if CONNECTION & {*each.opts}]:
        blocks.append("Connection:\n" + _columns(map(_option_row, connection)))
    blocks.append("Examples:\n" + "".join(_example(f"{PROGRAM} {command.words} {each}") for each in command.examples))
    return ORIGIN + "\n".join(blocks)


def _prose(text: str) -> Iterable[str]:
    """Yield the paragraphs of a text, each wrapped again."""
    for paragraph in text.split("\n\n"):
        yield fill(" ".join(paragraph.split()), WIDTH, break_on_hyphens=False) + "\n"


def _example(line: str) -> str:
    """Return an example; one that is too long goes on behind a backslash, as a shell reads it."""
    lines = wrap(line.rstrip(), WIDTH - 8, break_long_words=False, break_on_hyphens=False)
    return "  " + " \\\n      ".join(lines) + "\n"


def _option_row(option: "click.Option") -> tuple[str, str]:
    names = ", ".join(sorted([*option.opts, *option.secondary_opts], key=len))
    notes = []
    if option.required:
        notes.append("required")
    if option.multiple:
        notes.append("may be repeated")
    if option.show_default:
        notes.append(
            f"default: {option.default:g}" if isinstance(option.default, float) else f"default: {option.default}"
        )
    if option.envvar:
        notes.append(f"environment: {option.envvar}")
    described = f"{option.help} [{'; '.join(notes)}]" if notes else option.help or ""
    return (names if option.is_flag else f"{names} {option.metavar}"), described


def _columns(rows: Iterable[tuple[str, str]]) -> str:
    """Set two columns; a long left side gets a line of its own."""
    rows = list(rows)
    left_width = min(max(len(left) for left, _ in rows), LEFT_WIDTH_MAX) + 2
    lines = []
    for left, right in rows:
        body = indent(fill(right, WIDTH - left_width - 2, break_on_hyphens=False), " " * (left_width + 2))
        fits = len(left) <= left_width - 2
        lines.append(f"  {left.ljust(left_width)}{body.lstrip()}" if fits else f"  {left}\n{body}")
    return "\n".join(lines) + "\n"


def write_manual() -> None:
    """Write every page anew."""
    from pathlib import Path

    folder = Path(MANUAL)
    folder.mkdir(exist_ok=True)
    for stale in folder.glob("*.txt"):
        stale.unlink()
    for command in COMMANDS:
        (folder / file_name(command)).write_text(make_page(command), encoding="utf-8")


if __name__ == "__main__":
    write_manual()
