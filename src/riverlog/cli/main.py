"""The entry: find the command, load it alone, run it, and end with one sentence and an exit code.

Help for everything is printed without loading click, Rich or asyncio: lists from the command table, pages from
the files that `help.py` made. Only a command that runs pays for what it imports.
"""

import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Final

from riverlog.cli import help as pages
from riverlog.cli.command_table import COMMAND_BY_WORDS, GROUPS, CliCommand
from riverlog.cli.terminal.exits import CommandError, ExitCode, usage_error
from riverlog.cli.terminal.system_errors import system_sentence

HELP_FLAGS: Final = frozenset({"--help", "-h"})
NAMES: Final = ("riverlog", "streaming-system")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal of another age gets escapes, not a traceback
    return guarded(lambda: _run(list(sys.argv[1:] if arguments is None else arguments)))


def guarded(act: Callable[[], int | None]) -> int:
    """Call `act`; turn what can go wrong outside this program into one sentence and an exit code."""
    try:
        code = act() or ExitCode.DONE
        sys.stdout.flush()
    except CommandError as trouble:
        print(f"{_name_in_red()} {trouble}", file=sys.stderr)
        return trouble.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader has gone: nothing that is still buffered can be written, not even by the interpreter's exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.DONE
    except OSError as error:
        print(f"{_name_in_red()} {system_sentence(error)}", file=sys.stderr)
        return ExitCode.FAILED
    return code


def program_name() -> str:
    """Return under which of its names the program was called."""
    name = os.path.basename(sys.argv[0])
    return name if name in NAMES else NAMES[0]


def _name_in_red() -> str:
    """Return the beginning of a sentence about something that went wrong."""
    from riverlog.cli.terminal.colours import wrong

    return wrong(f"{program_name()}:", sys.stderr)


def _run(arguments: list[str]) -> int | None:
    for argument in arguments:
        if not _is_text(argument):
            raise usage_error(f"the argument {argument!r} is not text in UTF-8")
    if arguments[:1] == ["__complete"]:
        from riverlog.cli.completion import complete

        for each in complete(arguments[1:]):
            print(f"{each.word}\t{each.meaning}")
        return ExitCode.DONE
    if not arguments or arguments[0] in HELP_FLAGS or arguments == ["help"]:
        print(pages.overview(program_name()), end="")
        return ExitCode.DONE
    if arguments[0] == "--version":
        arguments[0] = "version"
    if arguments[0] == "help":
        arguments = [*arguments[1:], "--help"]
    if arguments[0].startswith("-"):
        raise usage_error(_option_first(arguments))
    command, rest = _find(arguments)
    if isinstance(command, str):
        print(pages.group(program_name(), command), end="")
        return ExitCode.DONE
    options = rest[: rest.index("--")] if "--" in rest else rest
    if not HELP_FLAGS.isdisjoint(options):
        print(pages.page(program_name(), command), end="")
        return ExitCode.DONE
    return _call(command, rest)


def _is_text(argument: str) -> bool:
    """Return whether an argument is text: bytes that are not UTF-8 reach Python as lone surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in argument)


def _find(arguments: list[str]) -> tuple[CliCommand | str, list[str]]:
    """Find the command and its arguments; the name of a group where no more than that was given."""
    group = ""
    for depth, word in enumerate(arguments):
        words = f"{group} {word}".strip()
        if words in COMMAND_BY_WORDS:
            return COMMAND_BY_WORDS[words], arguments[depth + 1 :]
        if word in HELP_FLAGS:
            break
        if words not in GROUPS:
            raise usage_error(f"there is no command '{words}'{_command_meant(group, word, arguments[depth + 1 :])}")
        group = words
    return group, []


def _call(command: CliCommand, arguments: list[str]) -> int | None:
    """Parse the arguments with click, then call the function."""
    import click

    loaded = command.load()
    try:
        # Not main(), which has sentences and exit codes of its own for interrupts and broken pipes.
        context = loaded.make_context(f"{program_name()} {command.words}", arguments)
        code: int | None = loaded.invoke(context)
    except click.UsageError as error:
        from riverlog.cli.mistakes import usage_mistake

        raise usage_mistake(error, command, program_name()) from None
    except click.exceptions.Exit:  # after `--key -- --help`, where only click sees that `--` is a value
        return ExitCode.DONE
    return code


def _option_first(arguments: list[str]) -> str:
    """Return what to say about a line that begins with an option: kcat and Kafka's tools have no commands."""
    from riverlog.cli import habits

    for word in arguments:
        meant = habits.FIRST_OPTIONS.get(word) or (habits.COMMANDS.get(word[2:]) if word.startswith("--") else None)
        if meant is not None:
            return f"write a command first; did you mean `{program_name()} {meant}`?"
    return f"write the command first and its options after it, as in `{program_name()} topics list -b HOST:PORT`"


def _command_meant(group: str, word: str, rest: list[str]) -> str:
    """Return a part of a sentence that names the command which was meant, or where to look for it."""
    from riverlog.cli import habits
    from riverlog.cli.terminal.suggestions import nearest

    below = f"{group} " if group else ""
    names = [each for each in (*GROUPS, *COMMAND_BY_WORDS) if each.startswith(below)]
    plain = f"{below}{word.lstrip('-')}".removeprefix("kafka-").removesuffix(".sh")
    meant = habits.COMMANDS.get(plain) or (plain if plain in names else None)
    if meant is None:
        near = nearest(word.lstrip("-"), [each.removeprefix(below) for each in names])
        if near is None:
            return f"; `{program_name()} {below}--help` lists what there is"
        meant = below + near
    verb = rest[0].lstrip("-") if rest else ""
    following = verb if f"{meant} {verb}" in COMMAND_BY_WORDS else ""
    return f"; did you mean `{program_name()} {meant} {following}".rstrip() + "`?"
