"""Every kind of window and late policy against a plain-Python oracle, on rows that are out of order."""

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from riverlog.pipelines import Pipeline, session, sliding, tumbling
from riverlog.pipelines.operators.windowing import later
from riverlog.pipelines.operators.windows import Session, Window
from riverlog.pipelines.spans import interval
from tests.support.stream_oracle import SECOND_US, Event, Late, Pair, disorder, watermarks_ms, windowed, windows_of
from tests.support.streams import micros, read_batches, run, write_batches

WINDOWS = [tumbling("10 seconds"), sliding("10 seconds", every="4 seconds"), session("3 seconds")]
DELAY_MS = 2_000
DAY_MS = 86_400_000


def made(seed: int) -> list[list[Event]]:
    """Make rows with strays, and a last one that moves the watermark past all others."""
    random = Random(seed)
    batches = disorder(
        random, batches=7, rows=40, keys="abcd", step_us=SECOND_US, disorder_us=4 * SECOND_US, stray_us=60 * SECOND_US
    )
    newest = max(event.at_us or 0 for batch in batches for event in batch)
    return [*batches, [Event("end", 0, newest + 1_000 * SECOND_US)]]


def defined(spark: SparkSession, folder: Path, batches: list[list[Event]], window: Window, **how: Any) -> Pipeline:
    pipeline = Pipeline("windows", spark=spark, checkpoints=str(folder / "checkpoints"))
    rows = read_batches(spark, write_batches(folder / "rows", batches))
    events = pipeline.of(rows, time="at", watermark=f"{DELAY_MS} ms")
    events.window(window, by=["key"], **how).aggregate(total="sum(number)", events="count(*)").to("results")
    return pipeline


def results(records: list[dict[str, Any]]) -> Counter[Any]:
    found = [json.loads(record["value"]) for record in records if record["topic"] == "results"]
    return Counter(
        ((micros(row["window"]["start"]), micros(row["window"]["end"])), row["key"], row["total"], row["events"])
        for row in found
    )


def late_rows(records: list[dict[str, Any]]) -> Counter[Late]:
    found = [json.loads(record["value"]) for record in records if record["topic"] == "late"]
    return Counter(
        Late(
            Pair(
                Event(told["row"]["key"], told["row"]["number"], micros(told["row"]["at"])),
                (micros(told["window"]["start"]), micros(told["window"]["end"])),
            ),
            micros(told["watermark"]) // 1000,
        )
        for told in found
    )


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: type(window).__name__)
def test_late_rows_are_dropped_and_counted(spark: SparkSession, tmp_path: Path, window: Window) -> None:
    batches = made(1)
    ran = run(defined(spark, tmp_path, batches, window))
    expected = windowed(batches, window, delay_ms=DELAY_MS)
    assert [results(ran.records[number]) for number in range(ran.batches)] == [each.results for each in expected]
    (counts,) = ran.counts.values()
    assert counts.rows == sum(map(len, batches))
    assert counts.timeless == sum(each.timeless for each in expected)
    assert counts.pairs == sum(each.pairs for each in expected)
    assert counts.late == sum(len(each.late) for each in expected) > 0
    written = [record for records in ran.records.values() for record in records]
    assert counts.pairs == rows_in(results(written)) + counts.late + still_open(batches, window)
    assert ran.dropped == 0


def rows_in(results: Counter[Any]) -> int:
    """Count the pairs that results have taken in."""
    return sum(row[3] * count for row, count in results.items())


def still_open(batches: list[list[Event]], window: Window) -> int:
    """Count the pairs of the row that closed all other windows."""
    return len(windows_of(window, batches[-1][0].at_us or 0))


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: type(window).__name__)
def test_late_rows_are_written_to_their_topic(spark: SparkSession, tmp_path: Path, window: Window) -> None:
    batches = made(2)
    ran = run(defined(spark, tmp_path, batches, window, late="side-output:late"))
    expected = windowed(batches, window, delay_ms=DELAY_MS)
    assert [results(ran.records[number]) for number in range(ran.batches)] == [each.results for each in expected]
    written = [record for records in ran.records.values() for record in records]
    assert late_rows(written) == Counter(late for each in expected for late in each.late)
    (counts,) = ran.counts.values()
    assert counts.late == late_rows(written).total()
    assert counts.pairs == rows_in(results(written)) + counts.late + still_open(batches, window)
    assert ran.dropped == 0


def test_a_watermark_that_moves_is_not_compiled_into_the_rows_way(spark: SparkSession, tmp_path: Path) -> None:
    """Code that has the watermark in it is compiled in each batch, and run without being optimised.

    Spark itself does that once in a batch, to close windows. Rows that are dropped would tell less: Spark lets files
    look for them, and compiles what it asks files for.
    """
    for number, seed in enumerate((4, 5)):
        before = compiled(spark)
        ran = run(defined(spark, tmp_path / str(number), made(seed), WINDOWS[0], late="side-output:late"))
    assert compiled(spark) - before <= ran.batches


def compiled(spark: SparkSession) -> int:
    """Count what Spark has compiled since it began."""
    metrics: Any = getattr(spark._jvm.org.apache.spark.metrics.source, "CodegenMetrics$")
    count: int = getattr(metrics, "MODULE$").METRIC_COMPILATION_TIME().getCount()
    return count


@pytest.mark.parametrize("window", WINDOWS[:2], ids=lambda window: type(window).__name__)
def test_results_are_recomputed_up_to_a_lateness(spark: SparkSession, tmp_path: Path, window: Window) -> None:
    batches = made(3)
    policy = "recompute:15 seconds, then side-output:late"
    ran = run(defined(spark, tmp_path, batches, window, late=policy))
    expected = windowed(batches, window, delay_ms=DELAY_MS + 15_000, updates=True)
    assert [results(ran.records[number]) for number in range(ran.batches)] == [each.results for each in expected]
    for number, outcome in enumerate(expected):
        assert late_rows(ran.records[number]) == Counter(outcome.late)
    written = [record for number in range(ran.batches) for record in ran.records[number]]
    newest: dict[Any, int] = {}  # of each window and key, the last that was written
    for number in range(ran.batches):
        newest |= {row[:2]: row[3] for row in results(ran.records[number])}
    (counts,) = ran.counts.values()
    assert counts.late == late_rows(written).total() > 0
    assert counts.pairs == sum(newest.values()) + counts.late
    assert ran.dropped == 0


@pytest.mark.parametrize("window", WINDOWS[:2], ids=lambda window: type(window).__name__)
def test_a_late_row_that_comes_again_is_written_once_each_time_beside_updates(
    spark: SparkSession, tmp_path: Path, window: Window
) -> None:
    first, *others = made(6)
    old = first[:3]  # late in each batch behind a few, whether the watermark moves with it or not
    batches = [first, *others[:-1], old, old, [*old, *old], others[-1]]
    ran = run(defined(spark, tmp_path, batches, window, late="side-output:late", emit="updates"))
    expected = windowed(batches, window, delay_ms=DELAY_MS, updates=True)
    for number, outcome in enumerate(expected):
        assert results(ran.records[number]) == outcome.results
        assert late_rows(ran.records[number]) == Counter(outcome.late)
    (counts,) = ran.counts.values()
    assert counts.late == sum(len(outcome.late) for outcome in expected) > 12


@pytest.mark.parametrize("emit", ["final", "updates"])
def test_names_may_be_written_in_any_case(spark: SparkSession, tmp_path: Path, emit: Any) -> None:
    batches = made(7)
    pipeline = Pipeline("cases", spark=spark, checkpoints=str(tmp_path / "checkpoints"))
    rows = read_batches(spark, write_batches(tmp_path / "rows", batches))
    events = pipeline.of(rows).watermark("AT", f"{DELAY_MS} ms").filter("NUMBER >= 0").select("Key", "number", "at")
    counted = events.window(WINDOWS[0], by="KEY", late="side-output:late", emit=emit)
    counted.aggregate(total="sum(number)", events="count(*)").select("WINDOW", "key", "total", "events").to("results")
    assert counted._by == ("Key",)
    assert pipeline.outputs[0].stream.properties.keys == ("WINDOW", "key")
    ran = run(pipeline)
    expected = windowed(batches, WINDOWS[0], delay_ms=DELAY_MS, updates=emit == "updates")
    written = [record for records in ran.records.values() for record in records]
    late = [json.loads(record["value"])["row"] for record in written if record["topic"] == "late"]
    assert Counter((row["Key"], row["number"], micros(row["at"])) for row in late) == Counter(
        tuple(each.pair.event) for outcome in expected for each in outcome.late
    )
    assert len([record for record in written if record["topic"] == "results"]) == sum(
        outcome.results.total() for outcome in expected
    )


def test_rows_of_a_union_are_late_by_the_watermark_of_both(spark: SparkSession, tmp_path: Path) -> None:
    sides = [made(8), made(9)]
    count = min(map(len, sides))
    sides = [[*side[: count - 1], side[-1]] for side in sides]
    pipeline = Pipeline("unions", spark=spark, checkpoints=str(tmp_path / "checkpoints"))
    delays_ms = (DELAY_MS, 4 * DELAY_MS)
    one, other = (
        pipeline.of(read_batches(spark, write_batches(tmp_path / name, side)), time="at", watermark=f"{delay_ms} ms")
        for name, side, delay_ms in zip(("one", "other"), sides, delays_ms, strict=True)
    )
    counted = one.union(other).window(WINDOWS[0], by=["key"], late="side-output:late")
    counted.aggregate(total="sum(number)", events="count(*)").to("results")
    ran = run(pipeline)
    each = [watermarks_ms(side, delay_ms) for side, delay_ms in zip(sides, delays_ms, strict=True)]
    batches = [[*left, *right] for left, right in zip(*sides, strict=True)]
    watermarks = [min(pair) for pair in zip(*each, strict=True)]
    expected = windowed(batches, WINDOWS[0], delay_ms=0, watermarks=watermarks)
    assert [results(ran.records[number]) for number in range(ran.batches)] == [each.results for each in expected]
    written = [record for records in ran.records.values() for record in records]
    assert late_rows(written) == Counter(late for outcome in expected for late in outcome.late)
    assert any(outcome.late for outcome in expected)
    assert ran.dropped == 0


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: type(window).__name__)
def test_spark_itself_drops_the_same_rows(spark: SparkSession, tmp_path: Path, window: Window) -> None:
    from pyspark.sql import functions as sql

    batches = made(2)
    rows = read_batches(spark, write_batches(tmp_path / "rows", batches)).withWatermark("at", "2 seconds")
    match window:
        case Session():
            place = sql.session_window("at", "3 seconds")
        case _:
            place = sql.window("at", "10 seconds", None if window == WINDOWS[0] else "4 seconds")
    plain = rows.groupBy(place.alias("window"), "key").agg(
        sql.sum("number").alias("total"), sql.count("*").alias("events")
    )
    pipeline = Pipeline("plain", spark=spark, checkpoints=str(tmp_path))
    pipeline.of(plain).to("results")
    ran = run(pipeline)
    expected = windowed(batches, window, delay_ms=DELAY_MS)
    assert [results(ran.records[number]) for number in range(ran.batches)] == [each.results for each in expected]
    assert ran.dropped > 0


def test_a_gap_of_a_day_has_24_hours_where_clocks_change(spark: SparkSession) -> None:
    """Rows are late by Spark's own rule, and its sessions know no summer time."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        rows = spark.sql("SELECT timestamp'2026-03-28 12:00:00' AS at, timestamp'2026-03-29 13:00:00' AS end")
        ends = (
            rows.groupBy(sql.session_window("at", interval(DAY_MS)), "end").count().select("session_window.end", "end")
        )
        (spark_says, expected) = ends.collect()[0]
        assert rows.select(later(sql.col("at"), DAY_MS)).collect()[0][0] == spark_says == expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone or "UTC")
