"""Windows over a DataFrame, with late rows taken out in front of Spark's operator and counted there.

Behind this, Spark's own counter of late rows stays at 0. A side output goes the way of the results, because a plan with
two branches would read its source twice: each late row is a group of its own, in a window that closes with the next
move of the watermark, and leaves the operator beside the results.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, assert_never

from pyspark.sql import functions as sql

from riverlog.pipelines.late import SideOutput
from riverlog.pipelines.rows import LATE, json_of, timed
from riverlog.pipelines.spans import interval
from riverlog.pipelines.windows import Session, Sliding, Tumbling, Window

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
    watermark: "Column",
    side: SideOutput | None,
    observed: str,
) -> "DataFrame":
    """Give `window`, the keys and the aggregates; with a side output, late rows as well, in the column LATE."""
    flagged = _flagged(rows, windowing, watermark, observed)
    if side is None:
        return _grouped(flagged.filter(~sql.col(_IS_LATE)), windowing, (), aggregates)
    return _beside_late_rows(flagged, windowing, aggregates, rows.columns)


def chained(rows: "DataFrame", windowing: Windowing, aggregates: Mapping[str, "Column"]) -> "DataFrame":
    """Put results of an operator into windows: Spark has let none of them through that would be late here."""
    if windowing.time == WINDOW:
        time = "_riverlog_time"
        rows = rows.withColumn(time, sql.window_time(WINDOW)).drop(WINDOW)
        windowing = windowing._replace(time=time)
    return _grouped(rows, windowing, (), aggregates)


def _flagged(rows: "DataFrame", windowing: Windowing, watermark: "Column", observed: str) -> "DataFrame":
    """Put every row into its windows, tell for each of these pairs whether it is late, and count."""
    known = rows.withColumn(_WATERMARK, watermark)
    match windowing.window:
        case Sliding(size_ms, every_ms, offset_ms):
            counted = known.observe(f"{observed}:rows", *_count_rows(windowing.time))
            slid = sql.window(windowing.time, interval(size_ms), interval(every_ms), interval(offset_ms))
            pairs = counted.withColumn(WINDOW, slid)
            late = pairs.withColumn(_IS_LATE, sql.col(f"{WINDOW}.end") <= sql.col(_WATERMARK))
            return late.observe(observed, *_count_pairs())
        case Tumbling(size_ms, offset_ms):
            end = _end_of_tumbling(sql.col(windowing.time), size_ms * 1000, offset_ms * 1000)
        case Session(gap_ms):
            end = sql.col(windowing.time) + _interval(gap_ms)
        case _:
            assert_never(windowing.window)
    late = known.withColumn(_IS_LATE, sql.coalesce(end <= sql.col(_WATERMARK), sql.lit(False)))
    return late.observe(observed, *_count_rows(windowing.time), *_count_pairs(windowing.time))


def _end_of_tumbling(at: "Column", size_us: int, offset_us: int) -> "Column":
    micros = sql.unix_micros(at)
    return sql.timestamp_micros(micros - sql.pmod(micros - sql.lit(offset_us), sql.lit(size_us)) + sql.lit(size_us))


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
    flagged: "DataFrame", windowing: Windowing, aggregates: Mapping[str, "Column"], columns: Sequence[str]
) -> "DataFrame":
    """Make each late row a group of its own, with how often it came, and results of it nothing."""
    is_late, watermark = sql.col(_IS_LATE), sql.col(_WATERMARK)
    soon = watermark + _interval(1)  # not late, and closed as soon as the watermark moves
    if isinstance(windowing.window, Session):
        begun = sql.col(windowing.time)
        missed = sql.struct(begun.alias("start"), (begun + _interval(windowing.window.gap_ms)).alias("end"))
        written = flagged.withColumn(LATE, _when_late(_record(windowing, columns, missed)))
        moved = sql.when(is_late, soon - _interval(windowing.window.gap_ms)).otherwise(sql.col(windowing.time))
        placed = written.withColumn(windowing.time, timed(moved, windowing.time, windowing.delay_ms))
    else:
        placed = flagged
        if isinstance(windowing.window, Tumbling):
            size, offset = interval(windowing.window.size_ms), interval(windowing.window.offset_ms)
            placed = flagged.withColumn(WINDOW, sql.window(windowing.time, size, None, offset))
        written = placed.withColumn(LATE, _when_late(_record(windowing, columns, sql.col(WINDOW))))
        closing = sql.struct(watermark.alias("start"), soon.alias("end"))
        moved = sql.when(is_late, closing).otherwise(sql.col(WINDOW))
        placed = written.withColumn(WINDOW, timed(moved, WINDOW, windowing.delay_ms))
    counts = {**aggregates, "_riverlog_copies": sql.count(sql.lit(1))}
    grouped = _grouped(placed, windowing, (sql.col(LATE),), counts)
    return grouped.select(
        WINDOW,
        *windowing.by,
        *(sql.when(sql.col(LATE).isNull(), sql.col(name)).alias(name) for name in aggregates),
        sql.when(sql.col(LATE).isNotNull(), sql.array_repeat(LATE, sql.col("_riverlog_copies").cast("int"))).alias(
            LATE
        ),
    )


def _when_late(record: "Column") -> "Column":
    return sql.when(sql.col(_IS_LATE), record)


def _record(windowing: Windowing, columns: Sequence[str], missed: "Column") -> "Column":
    key = json_of(windowing.by) if windowing.by else sql.lit(None).cast("string")
    row = sql.struct(*columns).alias("row")
    told = json_of([row, missed.alias(WINDOW), sql.col(_WATERMARK).alias("watermark")])
    return sql.struct(key.alias("key"), told.alias("value"))


def _interval(count_ms: int) -> "Column":
    return sql.expr(f"interval {count_ms} milliseconds")
