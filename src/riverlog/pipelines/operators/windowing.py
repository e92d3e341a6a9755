"""Windows over a DataFrame, with late rows taken out in front of Spark's operator and counted there.

Behind this, Spark's own counter of late rows stays at 0. A side output travels with the results, because a plan with
two branches would read its source twice: each late row is a group of its own, in a window that closes with the next
move of the watermark, and leaves the operator beside the results.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, assert_never

from pyspark.sql import functions as sql

from riverlog.pipelines.operators.late_rows import SideOutput
from riverlog.pipelines.operators.windows import Session, Sliding, Tumbling, Window
from riverlog.pipelines.rows import LATE, json_of, timed
from riverlog.pipelines.spans import interval

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WINDOW: Final = "window"
_IS_LATE: Final = "_riverlog_is_late"
_WATERMARK: Final = "_riverlog_watermark"


class Windowing(NamedTuple):
    """What to put into which windows."""

    window: Window
    time: str
    delay_ms: int
    by: tuple[str, ...]


def aggregated(
    rows: "DataFrame",
    windowing: Windowing,
    aggregates: Mapping[str, "Column"],
    *,
    judged: "Column",
    side: SideOutput | None,
    observed: str,
    updates: bool,
) -> "DataFrame":
    """Return `window`, the keys and the aggregates; with a side output, late rows as well, in the column LATE."""
    flagged = _flagged(rows, windowing, judged["at"], observed)
    if side is None:
        return _grouped(flagged.filter(~sql.col(_IS_LATE)), windowing, (), aggregates)
    # Updates repeat how often a row came whenever it comes again: so one that comes in another batch is another group.
    begin = sql.timestamp_micros(judged["batch"]) if updates else sql.col(_WATERMARK)
    return _beside_late_rows(flagged, windowing, aggregates, rows.columns, begin)


def chained(rows: "DataFrame", windowing: Windowing, aggregates: Mapping[str, "Column"]) -> "DataFrame":
    """Put results of an operator into windows: Spark has passed on none that would be late here."""
    if windowing.time == WINDOW:
        time = "_riverlog_time"
        rows = rows.withColumn(time, sql.window_time(WINDOW)).drop(WINDOW)
        windowing = windowing._replace(time=time)
    return _grouped(rows, windowing, (), aggregates)


def _flagged(rows: "DataFrame", windowing: Windowing, watermark: "Column", observed: str) -> "DataFrame":
    """Put every row into its windows, mark each of these pairs that is late, and count."""
    known = rows.withColumn(_WATERMARK, watermark)
    match windowing.window:
        case Sliding(size_ms, every_ms, offset_ms):
            counted = known.observe(f"{observed}:rows", *_count_rows(windowing.time))
            slid = sql.window(windowing.time, interval(size_ms), interval(every_ms), interval(offset_ms))
            pairs = counted.withColumn(WINDOW, slid)
            late = pairs.withColumn(_IS_LATE, sql.col(f"{WINDOW}.end") <= sql.col(_WATERMARK))
            return late.observe(observed, *_count_pairs())
        case Tumbling():
            _, end = _tumbling(sql.col(windowing.time), windowing.window)
        case Session(gap_ms):
            end = later(sql.col(windowing.time), gap_ms)
        case _:
            assert_never(windowing.window)
    late = known.withColumn(_IS_LATE, sql.coalesce(end <= sql.col(_WATERMARK), sql.lit(False)))
    return late.observe(observed, *_count_rows(windowing.time), *_count_pairs(windowing.time))


def _tumbling(at: "Column", window: Tumbling) -> tuple["Column", "Column"]:
    """Return start and end of the window of a time."""
    micros, size_us, offset_us = sql.unix_micros(at), window.size_ms * 1000, window.offset_ms * 1000
    start = micros - sql.pmod(micros - sql.lit(offset_us), sql.lit(size_us))
    return sql.timestamp_micros(start), sql.timestamp_micros(start + sql.lit(size_us))


def _count_rows(time: str) -> list["Column"]:
    return [sql.count(sql.lit(1)).alias("rows"), sql.count_if(sql.col(time).isNull()).alias("timeless")]


def _count_pairs(time: str | None = None) -> list["Column"]:
    pairs = sql.count(sql.lit(1) if time is None else sql.col(time))
    return [pairs.alias("pairs"), sql.count_if(_IS_LATE).alias("late")]


def _grouped(
    rows: "DataFrame", windowing: Windowing, more: Sequence["Column"], aggregates: Mapping[str, "Column"]
) -> "DataFrame":
    found = [column.alias(name) for name, column in aggregates.items()]
    return rows.groupBy(_window_column(rows, windowing), *windowing.by, *more).agg(*found)


def _window_column(rows: "DataFrame", windowing: Windowing) -> "Column":
    match windowing.window:
        case Session(gap_ms):
            return sql.session_window(windowing.time, interval(gap_ms)).alias(WINDOW)
        case _ if WINDOW in rows.columns:
            return sql.col(WINDOW)
        case Tumbling(size_ms, offset_ms):
            return sql.window(windowing.time, interval(size_ms), None, interval(offset_ms)).alias(WINDOW)
        case Sliding(size_ms, every_ms, offset_ms):
            slid = sql.window(windowing.time, interval(size_ms), interval(every_ms), interval(offset_ms))
            return slid.alias(WINDOW)


def _beside_late_rows(
    flagged: "DataFrame",
    windowing: Windowing,
    aggregates: Mapping[str, "Column"],
    columns: Sequence[str],
    begin: "Column",
) -> "DataFrame":
    """Group each late row by itself, with how often it came, so that results hold nothing of it.

    Nobody sees the window of such a group. It begins at `begin`, and ends where it is closed soon.
    """
    is_late, watermark, time = sql.col(_IS_LATE), sql.col(_WATERMARK), windowing.time
    soon_ms = 1  # behind the watermark: not late, and closed as soon as the watermark moves
    if isinstance(windowing.window, Session):
        gap_ms = windowing.window.gap_ms
        start, end = sql.col(time), later(sql.col(time), gap_ms)
        soon = later(watermark, soon_ms - gap_ms)
        placed = timed(sql.when(is_late, soon).otherwise(sql.col(time)), time, windowing.delay_ms)
    else:
        if isinstance(windowing.window, Tumbling):
            start, end = _tumbling(sql.col(time), windowing.window)
            flagged = flagged.filter(sql.col(time).isNotNull())
        else:
            start, end = sql.col(f"{WINDOW}.start"), sql.col(f"{WINDOW}.end")
        # The bounds are chosen, and not the struct of them: that would be made twice for each row.
        soon = later(watermark, soon_ms)
        chosen = (sql.when(is_late, begin).otherwise(start), sql.when(is_late, soon).otherwise(end))
        bounds = sql.struct(*(bound.alias(name) for bound, name in zip(chosen, ("start", "end"), strict=True)))
        placed = timed(bounds, WINDOW, windowing.delay_ms)
    missed = sql.struct(start.alias("start"), end.alias("end"))
    record = sql.when(is_late, _late_record(columns, missed)).alias(LATE)
    kept = [name for name in flagged.columns if name not in (_IS_LATE, _WATERMARK, WINDOW)]
    if isinstance(windowing.window, Session):
        rows = flagged.select(*(placed if name == time else sql.col(f"`{name}`") for name in kept), record)
    else:
        rows = flagged.select(*(sql.col(f"`{name}`") for name in kept), placed, record)
    counts = {**aggregates, "_riverlog_copies": sql.count(sql.lit(1))}
    grouped = _grouped(rows, windowing, (sql.col(LATE),), counts)
    late = sql.col(LATE)
    key = json_of(windowing.by) if windowing.by else sql.lit(None).cast("string")
    copies = sql.array_repeat(
        sql.struct(key.alias("key"), late.alias("value")), sql.col("_riverlog_copies").cast("int")
    )
    return grouped.select(
        WINDOW,
        *windowing.by,
        *(sql.when(late.isNull(), sql.col(name)).alias(name) for name in aggregates),
        sql.when(late.isNotNull(), copies).alias(LATE),
    )


def _late_record(columns: Sequence[str], missed: "Column") -> "Column":
    """Return which row is late, for which window, and by which watermark."""
    row = sql.struct(*columns).alias("row")
    return json_of([row, missed.alias(WINDOW), sql.col(_WATERMARK).alias("watermark")])


def later(at: "Column", count_ms: int) -> "Column":
    """Return the time so much later, as Spark's windows count it: with an interval, a day may have 23 or 25 hours."""
    return sql.timestamp_micros(sql.unix_micros(at) + sql.lit(count_ms * 1000))
