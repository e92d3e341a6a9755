"""Joins of two streams whose rows are near each other in time, with late rows taken out in front and counted.

Spark finds a row late for a join when its event time is not after the watermark of the batch before. A side output
travels with the results, as in windows: the join is made as a full outer one, in which a row that fails a condition on
its own side alone leaves at once without entering the state. Late rows fail it; what the asked join would not have is
left out afterwards.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from pyspark.sql import functions as sql

from riverlog.pipelines.operators.late_rows import SideOutput
from riverlog.pipelines.rows import LATE, json_of, timed, untimed
from riverlog.pipelines.stream_properties import StreamProperties

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

How = Literal["inner", "left", "full"]

_WATERMARK: Final = "_riverlog_watermark"
_IS_LATE: Final = "_riverlog_is_late"
_THERE: Final = "_riverlog_there"
_EITHER: Final = "_riverlog_time"


class Side(NamedTuple):
    """One of the two streams: its rows, their event time, and how far from it the other's may be."""

    name: Literal["left", "right"]
    rows: "DataFrame"
    time: str
    delay_ms: int
    before_ms: int
    after_ms: int


def joined(
    left: Side,
    right: Side,
    *,
    on: Sequence[str],
    how: How,
    prefix: str,
    watermark: "Column | None",
    side: SideOutput | None,
    observed: str,
) -> "DataFrame":
    """Return the keys once, then the left's columns and the right's, with the prefix where the left has the name."""
    names = right_names(left.rows.columns, right.rows.columns, on=on, prefix=prefix)
    beside = side is not None
    one = _prepared(left, on, watermark, f"{observed}:left", beside)
    other = _prepared(right, on, watermark, f"{observed}:right", beside)
    one = one.withColumnRenamed(LATE, f"{LATE}_left").withColumnRenamed(_THERE, f"{_THERE}_left")
    other = other.withColumnsRenamed({**{name: f"_riverlog_right_{name}" for name in on}, **names})
    near = [sql.col(name) == sql.col(f"_riverlog_right_{name}") for name in on]
    there = sql.col(names[right.time])
    near.append(there >= sql.col(left.time) - sql.expr(f"interval {left.before_ms} milliseconds"))
    near.append(there <= sql.col(left.time) + sql.expr(f"interval {left.after_ms} milliseconds"))
    if beside:
        near += [sql.col(f"{LATE}_left").isNull(), sql.col(LATE).isNull()]
    condition = near[0]
    for each in near[1:]:
        condition = condition & each
    both = one.join(other, condition, "full_outer" if beside or how == "full" else _SPARKS[how])
    if beside:
        both = both.filter(_is_wanted(how))
    return both.select(
        *(sql.coalesce(sql.col(name), sql.col(f"_riverlog_right_{name}")).alias(name) for name in on),
        *(name for name in left.rows.columns if name not in on),
        *(names[name] for name in right.rows.columns if name not in on),
        *([_late_rows().alias(LATE)] if beside else []),
    )


def with_either_time(rows: "DataFrame", properties: StreamProperties, delay_ms: int) -> tuple["DataFrame", str]:
    """Return rows with their event time and its name: of a full join, that of whichever stream has the row."""
    time = properties.need_time("a window")
    if properties.other_time is None:
        return rows, time
    either = timed(sql.coalesce(sql.col(time), sql.col(properties.other_time)), _EITHER, delay_ms)
    plain = (
        untimed(sql.col(name), name) if name in (time, properties.other_time) else sql.col(f"`{name}`")
        for name in rows.columns
    )
    return rows.select(*plain, either), _EITHER


def right_names(left: Sequence[str], right: Sequence[str], *, on: Sequence[str], prefix: str) -> dict[str, str]:
    """Return the names of the right's columns in the result; ValueError where a name comes twice."""
    for name in on:
        if name not in left or name not in right:
            raise ValueError(f"both streams need the column {name!r} to be joined on it")
    names = {name: f"{prefix}{name}" if name in left else name for name in right if name not in on}
    twice = sorted({name for name in names.values() if name in left})
    if twice:
        raise ValueError(f"both streams have {', '.join(twice)}; set a prefix for the right one's")
    return names


def _prepared(side: Side, on: Sequence[str], watermark: "Column | None", observed: str, beside: bool) -> "DataFrame":
    """Count rows and late ones; leave out what has no time, and late ones or what they would match."""
    if watermark is None:
        return side.rows
    at = sql.col(side.time)
    late = sql.coalesce(at <= sql.col(_WATERMARK), sql.lit(False))
    flagged = side.rows.withColumn(_WATERMARK, watermark).withColumn(_IS_LATE, late)
    counted = flagged.observe(
        observed,
        sql.count(sql.lit(1)).alias("rows"),
        sql.count_if(at.isNull()).alias("timeless"),
        sql.count(at).alias("pairs"),
        sql.count_if(_IS_LATE).alias("late"),
    ).filter(at.isNotNull())
    if not beside:
        return counted.filter(~sql.col(_IS_LATE)).drop(_WATERMARK, _IS_LATE)
    is_late = sql.col(_IS_LATE)
    timely = timed(sql.when(~is_late, at), side.time, side.delay_ms)
    return counted.select(
        *(timely if name == side.time else sql.col(name) for name in side.rows.columns),
        sql.when(is_late, _record(side, on)).alias(LATE),
        sql.lit(True).alias(_THERE),
    )


def _record(side: Side, on: Sequence[str]) -> "Column":
    at = sql.col(side.time)
    missed = sql.struct(
        (at - sql.expr(f"interval {side.before_ms} milliseconds")).alias("start"),
        (at + sql.expr(f"interval {side.after_ms} milliseconds")).alias("end"),
    )
    row = sql.struct(*side.rows.columns).alias("row")
    judged_by = sql.col(_WATERMARK).alias("watermark")
    told = json_of([row, missed.alias("window"), judged_by, sql.lit(side.name).alias("side")])
    return sql.struct(json_of(on).alias("key"), told.alias("value"))


def _is_wanted(how: How) -> "Column":
    """Select late rows and what the asked join has, out of what the full outer one has."""
    late = sql.col(f"{LATE}_left").isNotNull() | sql.col(LATE).isNotNull()
    left, right = sql.col(f"{_THERE}_left").isNotNull(), sql.col(_THERE).isNotNull()
    return late | {"inner": left & right, "left": left, "full": left | right}[how]


def _late_rows() -> "Column":
    left, right = sql.col(f"{LATE}_left"), sql.col(LATE)
    return sql.when(left.isNotNull(), sql.array(left)).when(right.isNotNull(), sql.array(right))


_SPARKS: Final = {"inner": "inner", "left": "left_outer", "full": "full_outer"}
