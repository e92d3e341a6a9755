"""The kinds of windows: tumbling, sliding, and sessions with a gap. Pure: what they are, not how Spark makes them.

A window has a start, which is part of it, and an end, which is not. Tumbling and sliding windows lie on a grid from
1970 on, in UTC. A session is as long as rows come that are less than its gap apart; its end is its last row plus the
gap.
"""

from dataclasses import dataclass
from typing import assert_never

from riverlog.pipelines.spans import Span, span_ms, span_text


@dataclass(frozen=True, slots=True)
class Tumbling:
    """Windows side by side: every row is in one."""

    size_ms: int
    offset_ms: int = 0


@dataclass(frozen=True, slots=True)
class Sliding:
    """Windows that overlap: a row is in `size / every` of them."""

    size_ms: int
    every_ms: int
    offset_ms: int = 0


@dataclass(frozen=True, slots=True)
class Session:
    """Rows of one key without a pause as long as the gap."""

    gap_ms: int


Window = Tumbling | Sliding | Session


def tumbling(size: Span, *, offset: Span = "0 seconds") -> Tumbling:
    """Return windows of this size; with an offset, the grid begins that much after 1970."""
    return Tumbling(span_ms(size, "the window"), span_ms(offset, "the offset", least=0))


def sliding(size: Span, *, every: Span, offset: Span = "0 seconds") -> Sliding:
    """Return windows of this size, a new one `every` so often."""
    size_ms, every_ms = span_ms(size, "the window"), span_ms(every, "every")
    if every_ms > size_ms:
        raise ValueError(f"a window of {size} every {every} leaves rows out; let it slide by at most its size")
    return Sliding(size_ms, every_ms, span_ms(offset, "the offset", least=0))


def session(gap: Span) -> Session:
    """Return sessions that end when no row came for as long as the gap."""
    return Session(span_ms(gap, "the gap"))


def check_window(given: object) -> None:
    """Refuse what is no window, such as the text of its length; ValueError says which there are."""
    if not isinstance(given, Window):
        raise ValueError(
            f"{given!r} is no window; write tumbling('1 minute'), sliding('10 minutes', every='1 minute') or "
            "session('30 minutes')"
        )


def words_of(window: Window) -> str:
    """Describe a window."""
    match window:
        case Tumbling(size_ms):
            return f"windows of {span_text(size_ms)}"
        case Sliding(size_ms, every_ms):
            return f"windows of {span_text(size_ms)} every {span_text(every_ms)}"
        case Session(gap_ms):
            return f"sessions with a gap of {span_text(gap_ms)}"
        case _:
            assert_never(window)
