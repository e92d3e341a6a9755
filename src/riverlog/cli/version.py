"""`version`: which riverlog on which Python."""

import platform

from riverlog import __version__
from riverlog.cli.options import TextOutput
from riverlog.cli.render import OutputFormat, emit


def version(output: TextOutput = None) -> None:
    """Print the version."""
    facts = {
        "riverlog": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    sentence = f"riverlog {__version__} (Python {facts['python']}, {facts['system']})"
    emit([facts], output or OutputFormat.TABLE, lambda: print(sentence))
