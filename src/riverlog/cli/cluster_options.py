"""Commands that talk to a cluster: the options that all of them have, and a conversation with its administration."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeVar

from riverlog.cli import profiles
from riverlog.cli.client_settings import ClientSettings, new_client, settings_in_file, typed_settings
from riverlog.cli.kafka_clients import BOOTSTRAP
from riverlog.cli.patience import Talking, noticing
from riverlog.cli.refusals import MISNAMED, client_errors, missing, not_there
from riverlog.cli.terminal.exits import CommandError
from riverlog.cli.terminal.options import (
    bootstrap_option,
    bootstrap_option_with,
    client_settings_option,
    command_config_option,
    confirm,
    output_option,
    profile_option,
    text_output_option,
)
from riverlog.cli.terminal.render import OutputFormat, Row, chosen, emit, emit_table, plural
from riverlog.cli.terminal.screen import redrawn

if TYPE_CHECKING:
    from riverlog import Admin, KafkaError
    from riverlog.client.admin.controllers import ControllerAdmin

T = TypeVar("T")
C = TypeVar("C", bound=Talking)
A = TypeVar("A")

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Which cluster, how to talk to it, and how to print what it says."""

    bootstrap: str
    settings: ClientSettings
    output: OutputFormat | None

    def ask(
        self,
        question: "Callable[[Admin], Awaitable[T]]",
        *,
        topics: Iterable[str] = (),
        groups: Iterable[str] = (),
    ) -> T:
        """Open an administration client, ask, and close it again; `topics` and `groups` are those that must exist."""
        from riverlog import Admin

        async def work() -> T:
            async with talking(self.client(Admin)) as admin:
                return await question(admin)

        return self.run(work(), topics=topics, groups=groups)

    def show(
        self,
        question: "Callable[[Admin], Awaitable[T]]",
        present: Callable[[T], None],
        *,
        watch: bool,
        interval: float,
        topics: Iterable[str] = (),
        groups: Iterable[str] = (),
    ) -> None:
        """Ask and print the answer, with --watch again and again."""

        self.ask(partial(_shown, question, present, watch=watch, interval=interval), topics=topics, groups=groups)

    def ask_controllers(self, addresses: str, question: "Callable[[ControllerAdmin], Awaitable[T]]") -> T:
        """Ask controllers on their own listener, in place of brokers."""
        from riverlog.client.admin.controllers import ControllerAdmin

        client = new_client(ControllerAdmin, addresses, self.settings)

        async def work() -> T:
            async with client as admin:
                return await question(admin)

        return self.run(work())

    def show_controllers(
        self,
        addresses: str,
        question: "Callable[[ControllerAdmin], Awaitable[T]]",
        present: Callable[[T], None],
        *,
        watch: bool,
        interval: float,
    ) -> None:
        """Ask controllers and print the answer, with --watch again and again."""
        self.ask_controllers(addresses, partial(_shown, question, present, watch=watch, interval=interval))

    def run(self, work: Coroutine[Any, Any, T], *, topics: Iterable[str] = (), groups: Iterable[str] = ()) -> T:
        """Run a conversation with the cluster; what it refuses becomes a sentence."""
        with self.errors(topics=topics, groups=groups):
            return run(work)

    @contextmanager
    def errors(self, *, topics: Iterable[str] = (), groups: Iterable[str] = ()) -> Iterator[None]:
        """Turn what the cluster refuses into a sentence; where one of these topics or groups is missing, it says so."""
        from riverlog import KafkaError

        with client_errors():
            try:
                yield
            except KafkaError as error:
                raise asyncio.run(self._explained(error, topics, groups)) from error

    async def _explained(
        self, error: "KafkaError", topics: Iterable[str], groups: Iterable[str]
    ) -> "KafkaError | CommandError":
        if error.code not in MISNAMED:
            return error
        async with self.admin_beside() as admin:
            return await missing(admin, error, topics, groups)

    def client(self, client: Callable[..., T], fixed: Mapping[str, Any] | None = None) -> T:
        """Create a client; `fixed` are the options of the command that are settings of the client."""
        return new_client(client, self.bootstrap, self.settings, fixed)

    def admin_beside(self) -> "AbstractAsyncContextManager[Admin]":
        """Open an administration client beside another client, which may have been given settings of its own."""
        from riverlog import Admin

        return talking(new_client(Admin, self.bootstrap, ClientSettings(filed=self.settings.all)))

    @property
    def prints_text(self) -> bool:
        """Return whether rows are printed as text for people."""
        return chosen(self.output) is OutputFormat.TABLE

    def emit(self, rows: Sequence[Row], text: Callable[[], None]) -> None:
        """Print rows as -o chose."""
        emit(rows, self.output, text)

    def emit_table(self, rows: Sequence[Row], columns: Sequence[str], nothing: str | None = None) -> None:
        """Print rows as -o chose; their first values are the columns of the table."""
        emit_table(rows, self.output, columns, nothing)

    def delete(
        self, noun: str, names: Sequence[str], contents: str, by: "Callable[[Admin], Awaitable[object]]", *, yes: bool
    ) -> None:
        """Delete what is named after a question on a terminal, and print what was deleted.

        Where one of several is not there, none is deleted: a slip of the pen should not be half done.
        """

        async def check(admin: "Admin") -> None:
            listed = await (admin.list_topics(internal=True) if noun == "topic" else admin.list_groups())
            absent = not_there(noun, names, [each.name for each in listed])
            if absent is not None:
                undone = "nothing was deleted: " if len(names) > 1 else ""
                raise CommandError(f"{undone}{absent}", absent.exit_code)

        self.ask(check)
        confirm(f"Delete {', '.join(names)} with all {contents}?", yes=yes, otherwise="nothing was deleted")
        self.ask(by, topics=names if noun == "topic" else (), groups=names if noun == "group" else ())
        rows = [{noun: name, "deleted": True} for name in names]
        self.emit(rows, lambda: print(f"Deleted {plural(len(names), noun)}: {', '.join(names)}"))


async def _shown(
    question: Callable[[A], Awaitable[T]], present: Callable[[T], None], admin: A, *, watch: bool, interval: float
) -> None:
    for number in count():
        answer = await question(admin)
        if not watch:
            present(answer)
            return
        with redrawn(first=number == 0):
            present(answer)
        await asyncio.sleep(interval)


@asynccontextmanager
async def talking(client: C) -> AsyncIterator[C]:
    """Start a client, and close it in the end; a line on standard error says so while the cluster owes it an answer."""
    async with noticing(client.unanswered, "answer"), client:
        yield client


def run(work: Coroutine[Any, Any, T], runner: Callable[[Coroutine[Any, Any, T]], T] = asyncio.run) -> T:
    """Run a conversation; SIGTERM ends it as Ctrl-C does: what is open is closed, and a member leaves its group."""
    try:
        return runner(_until_terminated(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _until_terminated(work: Coroutine[Any, Any, T]) -> T:
    working = asyncio.current_task()
    assert working is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, working.cancel)
    return await work


def cluster_options(
    command: Callable[..., Any], output: Callable[[Any], Any] = output_option, default: OutputFormat | None = None
) -> Callable[..., Any]:
    """Add -b, --profile, --command-config, -X and -o to a command; it takes them as one argument, `cluster`."""

    @wraps(command)
    def call(
        *,
        bootstrap: str | None,
        profile: str | None,
        command_config: str | None,
        settings: tuple[str, ...],
        output: OutputFormat | None,
        **rest: Any,
    ) -> Any:
        chosen, address = chosen_settings(bootstrap, profile, command_config, settings)
        return command(cluster=ClusterOptions(address, chosen, output or default), **rest)

    declared: Callable[..., Any] = output(call)
    for option in (client_settings_option, command_config_option, profile_option, bootstrap_option):
        declared = option(declared)
    return declared


cluster_text_options: Final = partial(cluster_options, output=text_output_option, default=OutputFormat.TABLE)
"""For commands whose text is made of lines that a program can read as well: it stays so in a pipe."""


def chosen_settings(
    bootstrap: str | None, profile: str | None, command_config: str | None, texts: Sequence[str]
) -> tuple[ClientSettings, str]:
    """Put settings together, and find the brokers to ask.

    What was typed wins over the file, the file over the profile. The profile in use counts where nothing else names
    brokers: its password is not for others.
    """
    typed = typed_settings(texts)
    filed = {} if profile is None else profiles.settings(profile)
    filed |= {} if command_config is None else settings_in_file(command_config)
    address = bootstrap or _brokers_of({**filed, **typed}) or os.environ.get("RIVERLOG_BOOTSTRAP_SERVERS")
    used = profiles.in_use() if profile is None and address is None else None
    if used is not None:
        filed = {**profiles.settings(used), **filed}
        address = _brokers_of(filed)
    return ClientSettings(typed, filed), address or DEFAULT_BOOTSTRAP


def chosen_brokers(bootstrap: str | None) -> str:
    """Return the brokers to ask."""
    return chosen_settings(bootstrap, None, None, ())[1]


brokers_option: Final = bootstrap_option_with(callback=lambda _context, _option, text: chosen_brokers(text))
"""For commands that take no other settings of the client."""


def _brokers_of(settings: Mapping[str, str]) -> str | None:
    return next((settings[name] for name in BOOTSTRAP if settings.get(name)), None)
