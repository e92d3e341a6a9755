"""Colour for what is wrong, where a person looks: on a terminal, unless NO_COLOR is set."""

import os
import sys
from typing import IO

_RED = "\x1b[31m"
_PLAIN = "\x1b[0m"


class Wrong(str):
    """The cell of a table that nobody should overlook."""

    __slots__ = ()


def wrong(text: str, stream: IO[str] | None = None) -> str:
    """Return a text in red, if the stream, standard output by default, shows colours."""
    return f"{_RED}{text}{_PLAIN}" if shows_colours(stream or sys.stdout) else text


def shows_colours(stream: IO[str]) -> bool:
    """Return whether colours are seen and wanted."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
