"""What becomes of late rows: dropped and counted, written to a topic of their own, or taken into results again. Pure.

    "drop"                          Drop()
    "side-output:orders-late"       SideOutput("orders-late")
    "recompute:1 hour"              Recompute(3_600_000)
    "recompute:1 hour, then side-output:orders-late"

A row is late for a window when Spark would drop it there: the end of the window is not after the watermark of the batch
before. Each pair of a row and a window is judged by itself.
"""

from dataclasses import dataclass
from typing import Final, assert_never

from riverlog.pipelines.spans import Span, span_ms, span_text


@dataclass(frozen=True, slots=True)
class Drop:
    """Leave late rows out, and count them."""


@dataclass(frozen=True, slots=True)
class SideOutput:
    """Write late rows to a topic, each with the window that it missed and the watermark."""

    topic: str


@dataclass(frozen=True, slots=True)
class Recompute:
    """Take rows into their windows until these are this much older than the watermark; then do as `beyond` says."""

    lateness_ms: int
    beyond: Drop | SideOutput = Drop()


Policy = Drop | SideOutput | Recompute

_SIDE: Final = "side-output:"
_RECOMPUTE: Final = "recompute:"
_THEN: Final = "then "


def side_output(topic: str) -> SideOutput:
    """Return the policy that writes late rows to a topic."""
    if not topic.strip():
        raise ValueError("a side output needs a topic: side-output:orders-late")
    return SideOutput(topic.strip())


def recompute(lateness: Span, *, beyond: "Drop | SideOutput | str" = Drop()) -> Recompute:
    """Return the policy that updates results, up to an allowed lateness."""
    then = policy(beyond)
    if isinstance(then, Recompute):
        raise ValueError(
            "rows later than the allowed lateness are dropped or written to a side output, not recomputed again"
        )
    return Recompute(span_ms(lateness, "the allowed lateness"), then)


def policy(given: Policy | str) -> Policy:
    """Understand a policy as it is written; ValueError says which there are."""
    if not isinstance(given, str):
        return given
    text = given.strip()
    if text == "drop":
        return Drop()
    if text.startswith(_SIDE):
        return side_output(text.removeprefix(_SIDE))
    if text.startswith(_RECOMPUTE):
        lateness, _, then = text.removeprefix(_RECOMPUTE).partition(",")
        return recompute(lateness, beyond=then.strip().removeprefix(_THEN) or "drop")
    raise ValueError(f"there is no late policy {given!r}; write drop, side-output:TOPIC or recompute:1 hour")


def late_words(given: Policy) -> str:
    """Describe what becomes of late rows, behind other words; of those that are dropped, nothing."""
    match given:
        case Drop():
            return ""
        case SideOutput(topic):
            return f"; late rows to {topic}"
        case Recompute(lateness_ms, beyond):
            return f"; recomputed for {span_text(lateness_ms)}{late_words(beyond)}"
        case _:
            assert_never(given)
