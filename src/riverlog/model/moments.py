"""Moments as people write them: `-15m`, `15:00`, ISO 8601, milliseconds. Pure; a mistake is one sentence."""

import re
from datetime import datetime, timedelta
from typing import Final

UNIT_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_SPAN: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]+)?)(ms|s|m|h|d|w)")
_MILLISECONDS: Final = re.compile(r"[0-9]{1,18}")
_CLOCK: Final = re.compile(r"\d{1,2}:\d{2}(:\d{2})?")


def moment_ms(text: str, *, now: datetime) -> int:
    """Read a moment: `-15m`, `15:00` (today), ISO 8601, or milliseconds since 1970, which is also the earliest.

    `now` knows its time zone, and a moment without one is in the same. ValueError says what may be written.
    """
    return max(0, _moment_ms(text, now))  # below zero, Kafka's protocol means something else


def span_ms(text: str) -> int | None:
    """Read a length of time, `90s` or `1.5h`; None where it is something else."""
    span = _SPAN.fullmatch(text.strip())
    return None if span is None else round(float(span[1]) * UNIT_MS[span[2]])


def milliseconds(moment: datetime) -> int:
    """Count exactly: a float of seconds would lose the last digit."""
    return (moment - datetime.fromtimestamp(0, moment.tzinfo)) // timedelta(milliseconds=1)


def _moment_ms(text: str, now: datetime) -> int:
    stripped = text.strip()
    if stripped.startswith("-") and stripped[1:2].isdigit() and (span := span_ms(stripped[1:])) is not None:
        return milliseconds(now) - span
    if stripped == "now":
        return milliseconds(now)
    if _MILLISECONDS.fullmatch(stripped) and len(stripped) != len("20260131"):
        return int(stripped)
    try:
        if _CLOCK.fullmatch(stripped):
            clock = datetime.strptime(stripped, "%H:%M:%S" if stripped.count(":") == 2 else "%H:%M")
            return milliseconds(now.replace(hour=clock.hour, minute=clock.minute, second=clock.second, microsecond=0))
        found = datetime.fromisoformat(stripped)
    except ValueError:
        raise ValueError(
            f"'{text}' is not a time; give one as -15m (units ms, s, m, h, d, w), 15:00, 2026-01-31T15:00, "
            f"2026-01-31T15:00:00Z, or milliseconds since 1970"
        ) from None
    return milliseconds(found if found.tzinfo else found.replace(tzinfo=now.tzinfo))
