"""`version`: which riverlog on which Python."""

import platform

import click

from riverlog import __version__
from riverlog.cli.terminal.options import text_output_option
from riverlog.cli.terminal.render import OutputFormat, emit


@click.command
@text_output_option
def version(output: OutputFormat | None) -> None:
    """Print the version."""
    facts = {
        "riverlog": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    sentence = f"riverlog {__version__} (Python {facts['python']}, {facts['system']})"
    emit([facts], output or OutputFormat.TABLE, lambda: print(sentence))
