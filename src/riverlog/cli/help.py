"""Help: lists rendered from the command table, and one page per command.

Pages come from the functions' signatures, which only Typer can read and Typer takes a tenth of a second to load;
so they are made beforehand: `python -m riverlog.cli.help` writes `manual/`, a test compares it with the
signatures, and `--help` prints a file.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from textwrap import fill, indent
from typing import TYPE_CHECKING, Final

from riverlog.cli.commands import COMMANDS, GROUPS, Command
from riverlog.cli.exits import MEANINGS

if TYPE_CHECKING:
    from typer.core import TyperArgument, TyperOption

WIDTH: Final = 100
MANUAL: Final = Path(__file__).with_name("manual")
ORIGIN: Final = "Made by `python -m riverlog.cli.help` from the command's signature; do not edit.\n"
PROGRAM: Final = "$PROGRAM"

SECTIONS: Final = {
    "Run a broker": ("dev", "serve"),
    "Topics and records": ("topics", "produce", "consume"),
    "Look inside": ("cluster", "log", "doctor", "config", "version"),
}


def overview(program: str) -> str:
    """Render what the program says without a command."""
    summaries = GROUPS | {command.words: command.summary for command in COMMANDS}
    blocks = [
        f"Usage: {program} COMMAND [OPTIONS]\n",
        "An event streaming broker that any Kafka client can use, and the tools around it.\n",
    ]
    for section, words in SECTIONS.items():
        blocks.append(f"{section}:\n" + _columns((word, summaries[word]) for word in words))
    blocks += [
        f"Every command explains itself: `{program} topics --help`, `{program} topics create --help`.\n"
        "Commands that talk to a cluster take -b HOST:PORT (or RIVERLOG_BOOTSTRAP_SERVERS; default 127.0.0.1:9092).\n"
        "Tables become JSON lines when the output is piped; -o table|json|yaml chooses. NO_COLOR is honoured.\n",
        exit_codes(),
    ]
    return "\n".join(blocks)


def group(program: str, name: str) -> str:
    """Render the list of a group's commands."""
    members = [command for command in COMMANDS if command.words.startswith(f"{name} ")]
    return "\n".join(
        [
            f"Usage: {program} {name} COMMAND [OPTIONS]\n",
            f"{GROUPS[name]}.\n",
            "Commands:\n" + _columns((command.words.split()[1], command.summary) for command in members),
            f"`{program} {members[0].words} --help` explains one.\n",
        ]
    )


def page(program: str, command: Command) -> str:
    """Read the page of a command."""
    text = (MANUAL / file_name(command)).read_text(encoding="utf-8")
    return text.removeprefix(ORIGIN).replace(PROGRAM, program)


def exit_codes() -> str:
    """Render the table of exit codes."""
    return "Exit codes:\n" + _columns((str(code.value), meaning) for code, meaning in MEANINGS.items())


def file_name(command: Command) -> str:
    """Name the page of a command."""
    return command.words.replace(" ", "-") + ".txt"


def make_page(command: Command) -> str:
    """Render a command's page from its function."""
    from importlib import import_module

    import typer

    from riverlog.cli.application import application

    function: Callable[..., object] = getattr(import_module(command.module), command.function)
    parameters = typer.main.get_command(application(command, function)).params
    arguments: list[TyperArgument] = [each for each in parameters if isinstance(each, typer.core.TyperArgument)]
    options: list[TyperOption] = [each for each in parameters if isinstance(each, typer.core.TyperOption)]
    usage = " ".join([f"Usage: {PROGRAM} {command.words} [OPTIONS]", *(_argument_usage(each) for each in arguments)])
    blocks = [usage + "\n", *_prose(function.__doc__ or "")]
    if arguments:
        blocks.append("Arguments:\n" + _columns((_name(each), each.help or "") for each in arguments))
    blocks.append("Options:\n" + _columns([*map(_option_row, options), ("-h, --help", "Show this page.")]))
    blocks.append("Examples:\n" + "".join(f"  {PROGRAM} {example}\n" for example in command.examples))
    return ORIGIN + "\n".join(blocks)


def _prose(docstring: str) -> Iterable[str]:
    """Give the paragraphs of a docstring, each wrapped anew."""
    from inspect import cleandoc

    for paragraph in cleandoc(docstring).split("\n\n"):
        yield fill(" ".join(paragraph.split()), WIDTH) + "\n"


def _argument_usage(argument: "TyperArgument") -> str:
    name = _name(argument) + ("…" if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _name(argument: "TyperArgument") -> str:
    return argument.metavar or argument.name or ""


def _option_row(option: "TyperOption") -> tuple[str, str]:
    names = ", ".join(sorted([*option.opts, *option.secondary_opts], key=len))
    notes = []
    if option.required:
        notes.append("required")
    if option.multiple:
        notes.append("may be repeated")
    if option.show_default and not option.is_flag and option.default not in (None, ()):
        notes.append(f"default: {option.default}")
    if option.envvar:
        notes.append(f"environment: {option.envvar}")
    described = f"{option.help} [{'; '.join(notes)}]" if notes else option.help or ""
    return (names if option.is_flag else f"{names} {option.metavar}"), described


def _columns(rows: Iterable[tuple[str, str]]) -> str:
    """Set two columns; a long left side gets a line of its own."""
    rows = list(rows)
    left_width = min(max(len(left) for left, _ in rows), 32) + 2
    lines = []
    for left, right in rows:
        body = indent(fill(right, WIDTH - left_width - 2), " " * (left_width + 2))
        fits = len(left) <= left_width - 2
        lines.append(f"  {left.ljust(left_width)}{body.lstrip()}" if fits else f"  {left}\n{body}")
    return "\n".join(lines) + "\n"


def write_manual() -> None:
    """Write every page anew."""
    MANUAL.mkdir(exist_ok=True)
    for stale in MANUAL.glob("*.txt"):
        stale.unlink()
    for command in COMMANDS:
        (MANUAL / file_name(command)).write_text(make_page(command), encoding="utf-8")


if __name__ == "__main__":
    write_manual()
