"""What can follow on a command line: commands, options, and names that the cluster is asked for.

A shell's script (`riverlog completion bash`) calls `riverlog __complete WORD…` with the words so far, the last of which
is being typed. A cluster that does not answer within a second leaves a list empty; nothing is ever said about it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from riverlog.cli.command_table import COMMANDS, GROUPS, CliCommand

if TYPE_CHECKING:
    import click

    from riverlog import Admin

FILES: Final = ":files"
"""Shows the shell's script that names of files can follow."""
SECONDS_MAX: Final = 1.0

_SUBJECTS: Final = {"topics": "topic", "groups": "group", "lag": "group", "transactions": "transactional id"}
"""What a NAME is the name of, by the first word of its command."""


class CompletionWord(NamedTuple):
    """A word that can stand there, and what it is."""

    word: str
    meaning: str = ""


def complete(words: Sequence[str]) -> list[CompletionWord]:
    """Return what the last word can become; `FILES` alone where a file is meant."""
    *before, typed = words or [""]
    command, depth = _command(before)
    if isinstance(command, str):
        return _matching(_below(command), typed) if depth == len(before) else []
    return _matching(_following(command, before[depth:], typed), typed)


def _command(words: Sequence[str]) -> tuple[CliCommand | str, int]:
    """Find the command that the words name, or the group they are in, and how many of them do."""
    by_words = {command.words: command for command in COMMANDS}
    group = ""
    for depth, word in enumerate(words, 1):
        name = f"{group} {word}".strip()
        if name in by_words:
            return by_words[name], depth
        if name not in GROUPS:
            return group, depth - 1
        group = name
    return group, len(words)


def _below(group: str) -> Iterator[CompletionWord]:
    summaries = GROUPS | {command.words: command.summary for command in COMMANDS}
    for words, summary in summaries.items():
        if words.rpartition(" ")[0] == group:
            yield CompletionWord(words.rpartition(" ")[2], summary)


def _following(command: CliCommand, before: Sequence[str], typed: str) -> Iterable[CompletionWord]:
    """Return what can follow behind the words of a command."""
    import click

    parameters = command.load().params
    options = {name: each for each in parameters if isinstance(each, click.Option) for name in each.opts}
    last = options.get(before[-1]) if before else None
    if last is not None and not last.is_flag:
        return _values(command, last, before)
    if typed.startswith("-"):
        return [CompletionWord(name, each.help or "") for name, each in options.items() if name.startswith("--")]
    arguments = [each for each in parameters if isinstance(each, click.Argument)]
    given = sum(not word.startswith("-") for word in before) - sum(
        word in options and not options[word].is_flag for word in before
    )
    repeated = [each for each in arguments if each.nargs == -1]
    chosen = arguments[given] if given < len(arguments) else repeated[-1] if repeated else None
    return _values(command, chosen, before) if chosen is not None else []


def _values(command: CliCommand, parameter: "click.Parameter", before: Sequence[str]) -> Iterable[CompletionWord]:
    """Return the values that a parameter can have."""
    import click

    metavar = str(parameter.metavar)
    match metavar.removesuffix("…").partition("[")[0]:
        case _ if isinstance(parameter.type, click.Choice):
            return [CompletionWord(str(each)) for each in parameter.type.choices]
        case "FILE" | "DIR" | "PATH" | "FOLDER":
            return [CompletionWord(FILES)]
        case "TOPIC":
            return _names("topic", before)
        case "NAME=VALUE":
            return [CompletionWord(f"{name}=") for name in _settings(command, str(parameter.name))]
        case "NAME":
            return _names(_subject(command, str(parameter.name)), before)
        case _:
            return []


def _subject(command: CliCommand, parameter: str) -> str:
    """Return what a NAME names."""
    if parameter in ("group", "profile"):
        return parameter
    if command.words.startswith(("config ", "cluster config ")) or parameter == "delete_config":
        return "setting of a node" if command.words.startswith("cluster ") else "setting"
    return _SUBJECTS.get(command.words.partition(" ")[0], command.words.partition(" ")[0])


def _settings(command: CliCommand, parameter: str) -> Iterable[str]:
    """Return the names of the settings that a parameter takes."""
    from riverlog.cli.kafka_clients import PARAMETERS
    from riverlog.model.settings import NODE_SETTINGS, TOPIC_SETTINGS

    if parameter == "config":
        return TOPIC_SETTINGS
    of_nodes = command.words in ("dev", "serve") or parameter == "settings_given"
    return NODE_SETTINGS if of_nodes else PARAMETERS if parameter == "settings" else ()


def _names(subject: str, before: Sequence[str]) -> list[CompletionWord]:
    """Return the names that there are."""
    from riverlog.cli import profiles
    from riverlog.model.settings import NODE_SETTINGS, TOPIC_SETTINGS

    async def topics(admin: "Admin") -> list[str]:
        return [topic.name for topic in await admin.list_topics()]

    async def groups(admin: "Admin") -> list[str]:
        return [group.name for group in await admin.list_groups()]

    async def transactional_ids(admin: "Admin") -> list[str]:
        return [each.transactional_id for each in await admin.list_transactions()]

    match subject:
        case "topic":
            return _asked(topics, before)
        case "group":
            return _asked(groups, before)
        case "transactional id":
            return _asked(transactional_ids, before)
        case "profile":
            return [CompletionWord(name) for name in profiles.names()]
        case "setting of a node":
            return [CompletionWord(name) for name in NODE_SETTINGS]
        case "setting":
            return [CompletionWord(name) for name in sorted({*TOPIC_SETTINGS, *NODE_SETTINGS})]
        case _:
            return []


def _asked(question: "Callable[[Admin], Awaitable[list[str]]]", before: Sequence[str]) -> list[CompletionWord]:
    """Ask the cluster that the words name."""
    from riverlog import Admin, KafkaError
    from riverlog.cli.client_settings import new_client
    from riverlog.cli.cluster_options import chosen_settings
    from riverlog.cli.terminal.exits import CommandError

    given = dict(pairwise(before))
    bootstrap = given.get("-b") or given.get("--bootstrap-server")

    async def ask() -> list[str]:
        settings, address = chosen_settings(bootstrap, given.get("--profile"), given.get("--command-config"), ())
        async with asyncio.timeout(SECONDS_MAX), new_client(Admin, address, settings) as admin:
            return await question(admin)

    try:
        return [CompletionWord(name) for name in asyncio.run(ask())]
    except (KafkaError, CommandError, TimeoutError, OSError):
        return []


def _matching(candidates: Iterable[CompletionWord], typed: str) -> list[CompletionWord]:
    return [each for each in candidates if each.word.startswith(typed) or each.word == FILES]
