"""What people type inside options: pairs, moments, offsets, escapes. Pure; a mistake is one sentence."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Final

from riverlog.cli.exits import usage

UNIT_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_RELATIVE: Final = re.compile(r"-([0-9]{1,12}(?:\.[0-9]+)?)(ms|s|m|h|d|w)")
_MILLISECONDS: Final = re.compile(r"[0-9]{1,18}")
_CLOCK: Final = re.compile(r"\d{1,2}:\d{2}(:\d{2})?")
_ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|.)", re.DOTALL)
_ESCAPED: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"0": b"\0", b"\\": b"\\"}


def pair(text: str, *, option: str) -> tuple[str, str]:
    """Split `name=value` at the first equals sign."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise usage(f"{option} needs name=value, but '{text}' was given")
    return name.strip(), value


def pairs(texts: Sequence[str], *, option: str) -> dict[str, str]:
    """Split many pairs; a name given twice is a mistake, not a silent choice."""
    found: dict[str, str] = {}
    for text in texts:
        name, value = pair(text, option=option)
        if name in found:
            raise usage(f"{option} names '{name}' twice")
        found[name] = value
    return found


def moment_ms(text: str, *, now: datetime) -> int:
    """Read a moment: `-15m`, `15:00` (today), ISO 8601, or milliseconds since 1970, which is also the earliest.

    `now` knows its time zone, and a moment without one is in the same.
    """
    return max(0, _moment_ms(text, now))  # below zero, Kafka's protocol means something else


def _moment_ms(text: str, now: datetime) -> int:
    stripped = text.strip()
    if relative := _RELATIVE.fullmatch(stripped):
        return _milliseconds(now) - round(float(relative[1]) * UNIT_MS[relative[2]])
    if stripped == "now":
        return _milliseconds(now)
    if _MILLISECONDS.fullmatch(stripped) and len(stripped) != len("20260131"):
        return int(stripped)
    try:
        if _CLOCK.fullmatch(stripped):
            clock = datetime.strptime(stripped, "%H:%M:%S" if stripped.count(":") == 2 else "%H:%M")
            return _milliseconds(now.replace(hour=clock.hour, minute=clock.minute, second=clock.second, microsecond=0))
        found = datetime.fromisoformat(stripped)
    except ValueError:
        raise usage(
            f"'{text}' is not a time; give one as -15m (units ms, s, m, h, d, w), 15:00, 2026-01-31T15:00, "
            f"2026-01-31T15:00:00Z, or milliseconds since 1970"
        ) from None
    return _milliseconds(found if found.tzinfo else found.replace(tzinfo=now.tzinfo))


def _milliseconds(moment: datetime) -> int:
    """Count exactly: a float of seconds would lose the last digit."""
    return (moment - datetime.fromtimestamp(0, moment.tzinfo)) // timedelta(milliseconds=1)


class Edge(Enum):
    """Where a partition begins and ends."""

    BEGINNING = auto()
    END = auto()


Start = Edge | int
"""Where to start reading: an edge, an offset, or (below zero) that many records before the end."""


def start(text: str) -> Start:
    """Read a starting offset: a number, `-N` for the last N, `beginning` or `end`."""
    match text.strip().lower():
        case "beginning" | "earliest":
            return Edge.BEGINNING
        case "end" | "latest":
            return Edge.END
        case number if re.fullmatch(r"-?\d{1,19}", number):
            return int(number)
        case _:
            raise usage(f"'{text}' is not an offset; give a number, -N for the last N records, beginning or end")


def unescape(text: str) -> bytes:
    r"""Turn `\n \r \t \0 \\ \xNN` into the bytes they stand for."""

    def replace(escape: re.Match[bytes]) -> bytes:
        name = escape[1]
        if len(name) > 1:
            return bytes([int(name[1:], 16)])
        if name not in _ESCAPED:
            raise usage(rf"'\{name.decode(errors='replace')}' is not an escape; known are \n \r \t \0 \\ and \xNN")
        return _ESCAPED[name]

    return _ESCAPE.sub(replace, text.encode())
