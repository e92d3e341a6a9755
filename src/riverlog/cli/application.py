"""One command as a Typer application of its own, so that running it loads no other."""

from collections.abc import Callable

import typer

from riverlog.cli.commands import Command


def application(command: Command, function: Callable[..., object]) -> typer.Typer:
    """Make the application whose only command is this function."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name=command.words, help=command.summary)(function)
    return app
