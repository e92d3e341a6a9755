"""Lengths of time as Spark and people write them: `10 seconds`, `1 minute 30 seconds`, `90s`. Pure; milliseconds
inside.

Months and years have no fixed length and are refused, as Spark refuses them for watermarks and windows.
"""

import re
from datetime import timedelta
from typing import Final

Span = str | timedelta
"""A length of time: text such as `10 seconds`, or a timedelta."""

_UNITS_MS: Final = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
    **dict.fromkeys(("w", "week", "weeks"), 604_800_000),
}
_UNITS: Final = (
    (86_400_000, "day"),
    (3_600_000, "hour"),
    (60_000, "minute"),
    (1_000, "second"),
    (1, "millisecond"),
)
_PART: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,3})?)\s*([a-z]+)")
_LARGEST_MS: Final = 1_000 * 366 * 86_400_000


def span_ms(span: Span, what: str, *, least: int = 1) -> int:
    """Return a length of time in milliseconds; ValueError says what of `what` is wrong and what may be written."""
    count = span // timedelta(milliseconds=1) if isinstance(span, timedelta) else _read(span, what)
    if not least <= count <= _LARGEST_MS:
        raise ValueError(f"{what} {str(span)!r} is out of range; give {'0 seconds' if least == 0 else '1 ms'} or more")
    return count


def interval(count_ms: int) -> str:
    """Write milliseconds as Spark reads them."""
    return f"{count_ms} milliseconds"


def span_text(count_ms: int) -> str:
    """Write milliseconds as people do, in the largest unit that has no rest."""
    unit_ms, unit = next((each for each in _UNITS if count_ms % each[0] == 0 and count_ms), _UNITS[-1])
    count = count_ms // unit_ms
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def _read(span: object, what: str) -> int:
    text = span if isinstance(span, str) else ""
    rest = text.strip().lower()
    total = 0.0
    while found := _PART.match(rest):
        if found[2] not in _UNITS_MS:
            break
        total += float(found[1]) * _UNITS_MS[found[2]]
        rest = rest[found.end() :].strip()
    if rest or not text.strip():
        raise ValueError(f"{what} {span!r} is no length of time; write one as 10 seconds, 5 minutes, 1 hour or 2 days")
    return round(total)
