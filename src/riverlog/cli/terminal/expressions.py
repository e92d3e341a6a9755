"""What people type inside options: pairs, moments, offsets, escapes. Pure; a mistake is one sentence."""

import re
from collections.abc import Sequence
from datetime import datetime
from enum import Enum, auto
from typing import Final

from riverlog.cli.terminal.exits import usage_error
from riverlog.model import moments

_ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|.)", re.DOTALL)
_ESCAPED: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"0": b"\0", b"\\": b"\\"}


def pair(text: str, *, option: str) -> tuple[str, str]:
    """Split `name=value` at the first equals sign."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise usage_error(f"{option} needs name=value, but '{text}' was given")
    return name.strip(), value


def pairs(texts: Sequence[str], *, option: str) -> dict[str, str]:
    """Split many pairs; a name given twice is a mistake, not a silent choice."""
    found: dict[str, str] = {}
    for text in texts:
        name, value = pair(text, option=option)
        if name in found:
            raise usage_error(f"{option} names '{name}' twice")
        found[name] = value
    return found


def moment_ms(text: str, *, now: datetime) -> int:
    """Read a moment, as `model.moments` does."""
    try:
        return moments.moment_ms(text, now=now)
    except ValueError as error:
        raise usage_error(str(error)) from None


class LogEdge(Enum):
    """Where a partition begins and ends."""

    BEGINNING = auto()
    END = auto()


class TimestampMs(int):
    """A time in milliseconds, where a number alone would be an offset."""


Start = LogEdge | int
"""Where to start reading: an edge, an offset, or (below zero) that many records before the end."""


def start(text: str) -> Start:
    """Read a starting offset: a number, `-N` for the last N, `beginning` or `end`."""
    match text.strip().lower():
        case "beginning" | "earliest":
            return LogEdge.BEGINNING
        case "end" | "latest":
            return LogEdge.END
        case number if re.fullmatch(r"-?\d{1,19}", number):
            return int(number)
        case _:
            raise usage_error(f"'{text}' is not an offset; give a number, -N for the last N records, beginning or end")


def unescape(text: str) -> bytes:
    r"""Turn `\n \r \t \0 \\ \xNN` into the bytes they stand for."""

    def replace(escape: re.Match[bytes]) -> bytes:
        name = escape[1]
        if len(name) > 1:
            return bytes([int(name[1:], 16)])
        if name not in _ESCAPED:
            raise usage_error(
                rf"'\{name.decode(errors='replace')}' is not an escape; known are \n \r \t \0 \\ and \xNN"
            )
        return _ESCAPED[name]

    return _ESCAPE.sub(replace, text.encode())
