"""What many commands share: options, arguments with a line of help, and the question before something is deleted."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import click

from riverlog.cli.terminal.exits import CommandError
from riverlog.cli.terminal.render import OutputFormat

INT16_MAX: Final = 2**15 - 1
INT32_MAX: Final = 2**31 - 1
"""What the wire has room for; a larger number is a mistake, and better found here."""

bootstrap_option_with: Final = partial(
    click.option,
    "-b",
    "--bootstrap-server",
    "bootstrap",
    metavar="HOST:PORT,…",
    help="Brokers to ask first. Without it: RIVERLOG_BOOTSTRAP_SERVERS, the profile in use, or 127.0.0.1:9092.",
)
bootstrap_option: Final = bootstrap_option_with()
profile_option: Final = click.option("--profile", metavar="NAME", help="Use this profile; `profile create` makes one.")
command_config_option: Final = click.option(
    "--command-config", metavar="FILE", help="Read settings of the client from a file, TLS and SASL too."
)
client_settings_option: Final = click.option(
    "-X",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the client by Kafka's name, such as request.timeout.ms=5000.",
)
controller_option: Final = click.option(
    "--bootstrap-controller",
    "controllers",
    metavar="HOST:PORT,…",
    help="Ask these controllers, instead of brokers.",
)
CONNECTION: Final = frozenset({"--bootstrap-server", "--profile", "--command-config", "-X"})
"""The options that say which cluster, and how to talk to it."""
output_format_option: Final = partial(
    click.option,
    "-o",
    "--output",
    type=click.Choice([each.value for each in OutputFormat]),
    callback=lambda _context, _option, text: None if text is None else OutputFormat(text),
    metavar="|".join(OutputFormat),
)
output_option: Final = output_format_option(help="How to print. Without it: text on a terminal, JSON lines when piped.")
text_output_option: Final = output_format_option(help="How to print. Without it: text, also when piped.")
"""For commands whose text is made of lines that a program can read as well."""


partitions_option: Final = click.option(
    "-p", "--partition", "partitions", type=click.IntRange(0), multiple=True, metavar="N", help="Only this partition."
)
yes_option: Final = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


def confirm(question: str, *, yes: bool, otherwise: str) -> None:
    """Ask on a terminal whether to go on; without --yes and a `y`, say what was left undone and end."""
    if yes or not sys.stdin.isatty():
        return
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError(otherwise)


def count_option(name: str, *, default: int, most: int, least: int = 1, help: str) -> Callable[[Any], Any]:
    """Declare an option that takes a count."""
    return click.option(
        name, type=click.IntRange(least, most), default=default, show_default=True, metavar="N", help=help
    )


def choice_option(*names: str, among: Sequence[str], default: str, help: str) -> Callable[[Any], Any]:
    """Declare an option that takes one of some words."""
    return click.option(
        *names, type=click.Choice(among), default=default, show_default=True, metavar="|".join(among), help=help
    )


class Argument(click.Argument):
    """A positional argument with a line of help, which click's own lack before 8.5."""

    metavar: str
    help: str

    def __init__(self, names: Sequence[str], *, metavar: str, help: str, **attributes: Any) -> None:
        super().__init__(names, metavar=metavar, **attributes)
        self.help = help

    @property
    def usage(self) -> str:
        """Return it as in a line of usage: `NAME`, `[NAME]` where it may be left out, `NAME…` for one or more."""
        name = self.metavar + ("…" if self.nargs == -1 else "")
        return name if self.required else f"[{name}]"

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the same for the usage line of click itself."""
        return [self.usage]
