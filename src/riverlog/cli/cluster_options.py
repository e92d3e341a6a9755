"""Commands that talk to a cluster: the options that all of them have, and a conversation with its administration."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

from riverlog.cli.client_settings import new_client, run
from riverlog.cli.terminal.options import (
    bootstrap_option,
    client_settings_option,
    confirm,
    output_option,
    text_output_option,
)
from riverlog.cli.terminal.render import OutputFormat, Row, chosen, emit, emit_table, plural

if TYPE_CHECKING:
    from riverlog import Admin

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """What -b, -X and -o chose."""

    bootstrap: str
    settings: tuple[str, ...]
    output: OutputFormat | None

    def ask(self, question: "Callable[[Admin], Awaitable[T]]") -> T:
        """Open an administration client, ask, and close it again."""
        from riverlog import Admin

        async def work() -> T:
            async with self.client(Admin) as admin:
                return await question(admin)

        return run(work())

    def client(self, client: Callable[..., T], fixed: Mapping[str, Any] | None = None) -> T:
        """Create a client; `fixed` are the options of the command that are settings of the client."""
        return new_client(client, self.bootstrap, self.settings, fixed)

    @property
    def prints_text(self) -> bool:
        """Return whether rows are printed as text for people."""
        return chosen(self.output) is OutputFormat.TABLE

    def emit(self, rows: Sequence[Row], text: Callable[[], None]) -> None:
        """Print rows as -o chose."""
        emit(rows, self.output, text)

    def emit_table(self, rows: Sequence[Row], columns: Sequence[str]) -> None:
        """Print rows as -o chose; their first values are the columns of the table."""
        emit_table(rows, self.output, columns)

    def delete(
        self, noun: str, names: Sequence[str], contents: str, by: "Callable[[Admin], Awaitable[object]]", *, yes: bool
    ) -> None:
        """Delete what is named after a question on a terminal, and print what was deleted."""
        confirm(f"Delete {', '.join(names)} with all {contents}?", yes=yes, otherwise="nothing was deleted")
        self.ask(by)
        rows = [{noun: name, "deleted": True} for name in names]
        self.emit(rows, lambda: print(f"Deleted {plural(len(names), noun)}: {', '.join(names)}"))


def cluster_options(
    command: Callable[..., Any], output: Callable[[Any], Any] = output_option, default: OutputFormat | None = None
) -> Callable[..., Any]:
    """Add -b, -X and -o to a command; it takes them as one argument, `cluster`."""

    @wraps(command)
    def call(*, bootstrap: str, settings: tuple[str, ...], output: OutputFormat | None, **rest: Any) -> Any:
        return command(cluster=ClusterOptions(bootstrap, settings, output or default), **rest)

    declared: Callable[..., Any] = bootstrap_option(client_settings_option(output(call)))
    return declared


cluster_text_options: Final = partial(cluster_options, output=text_output_option, default=OutputFormat.TABLE)
"""For commands whose text is made of lines that a program can read as well: it stays so in a pipe."""
