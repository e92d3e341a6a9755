"""What is known of a stream besides its rows: its event time, its keys, how it is written. Pure.

A stream is built once for a look at it and once for each query that writes it (`QueryContext`), because of late rows:
which they are stands in the query's own checkpoint, and a query that recomputes holds its watermark back.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

from riverlog.pipelines.lineage import Lineage
from riverlog.pipelines.operators.late_rows import SideOutput

Mode = Literal["append", "update"]
"""Spark's output mode: results once, when they are final, or whenever they change."""

UNSTARTED = "no-checkpoint"
"""The checkpoint of a stream that is only looked at."""


@dataclass(frozen=True, slots=True)
class QueryContext:
    """The query that a stream is built for: where its checkpoint lies, how much its watermark is held back."""

    checkpoint: str = UNSTARTED
    lateness_ms: int = 0


@dataclass(frozen=True, slots=True)
class StreamProperties:
    """What is known of a stream."""

    lineage: Lineage = field(default_factory=Lineage)
    """Where it comes from and what was done to it, for pictures and messages."""
    time: str | None = None
    """The column with the event time, which has a watermark."""
    delay_ms: int = 0
    """By how much the watermark is behind the newest event time."""
    keys: tuple[str, ...] = ()
    """Columns that identify a result."""
    mode: Mode = "append"
    side: SideOutput | None = None
    """Where late rows go that travel with the results."""
    is_result: bool = False
    """It comes out of a window or a join: no row of it is late for the next one."""
    lateness_ms: int = 0
    """By how much a query that writes it holds its watermark back."""
    is_full: bool = False
    """It has rows of a full join: some have no `time`, for only the other stream has them."""
    other_time: str | None = None
    """The column with the time of those, while it is there."""

    def after(self, step: str) -> "StreamProperties":
        """Return what is known after one more step."""
        return replace(self, lineage=self.lineage.after(step))

    def need_time(self, what: str) -> str:
        """Return the column with the event time; ValueError where there is none."""
        if self.time is None:
            raise ValueError(
                f"{what} needs an event time: name it with the stream (time='at', watermark='10 seconds'), keep its "
                "column, or call watermark('at', '10 seconds') before"
            )
        return self.time

    def need_other_time(self, what: str) -> None:
        """Refuse a step that would leave out rows which only the other stream of a full join has."""
        if self.is_full and self.other_time is None:
            raise ValueError(
                f"{what} behind a full join needs the event times of both streams, for a row may have only one of "
                "them: keep the columns of both"
            )

    def refuse_full(self, what: str) -> None:
        """Refuse a step that knows one event time only."""
        if self.is_full:
            raise ValueError(
                f"{what} cannot follow a full join: rows that only its other stream has have no event time of this "
                "one. Make it a left join, or write the results to a topic and go on from there"
            )

    def beside(self, other: "StreamProperties") -> "StreamProperties":
        """Return what is known of the rows of two streams; ValueError where they cannot be judged by one rule."""
        if self.time != other.time:
            raise ValueError(
                "a union needs one event time: name the same column with a watermark for both streams, or for neither "
                f"and then for the union (here it is {self.time or 'none'} and {other.time or 'none'})"
            )
        if self.is_result != other.is_result:
            raise ValueError(
                "results of a window or a join, and rows that are none, are not late by one rule: write the results to "
                "a topic, and read that for the union"
            )
        if self.mode != other.mode:
            raise ValueError("a union has updates of results, or results that are final, and not both")
        if self.other_time != other.other_time or self.is_full != other.is_full:
            raise ValueError("a full join has a union with results of the same kind only")
        return replace(
            self,
            lineage=self.lineage.after("union", other.lineage),
            delay_ms=max(self.delay_ms, other.delay_ms),
            keys=self.keys if self.keys == other.keys else (),
            lateness_ms=max(self.lateness_ms, other.lateness_ms),
        )

    def refuse_side(self, what: str) -> None:
        """Refuse a step that late rows on their way to a side output cannot take."""
        if self.side is not None:
            raise ValueError(
                f"{what} cannot follow a window or join with a side output: late rows travel with the results to "
                f"{self.side.topic!r}. Do it before, or write the results to a topic and go on from there"
            )
