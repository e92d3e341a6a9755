"""Every kind of join and its late rows against a plain-Python oracle, on rows that are out of order."""

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from riverlog.pipelines import Pipeline, tumbling
from riverlog.pipelines.operators.joins import right_names
from tests.support.stream_oracle import SECOND_US, Event, disorder, joined
from tests.support.streams import Ran, micros, read_batches, run, write_batches

DELAYS_MS = (1_000, 3_000)
BEFORE_MS, AFTER_MS = 2_000, 5_000
_SPARKS = {"inner": "inner", "left": "left_outer", "full": "full_outer"}


def made(seed: int) -> tuple[list[list[Event]], list[list[Event]]]:
    """Make two streams with as many batches, and last rows that move both watermarks past all others."""
    random = Random(seed)
    sides = [
        disorder(
            random, batches=9, rows=25, keys="abcdef", step_us=SECOND_US, disorder_us=2 * SECOND_US,
            stray_us=50 * SECOND_US,
        )
        for _ in range(2)
    ]  # fmt: skip
    count = min(map(len, sides))
    newest = max(event.at_us or 0 for side in sides for batch in side for event in batch)
    ends = [[Event(key, 0, newest + 1_000 * SECOND_US)] for key in ("left end", "right end")]
    left, right = ([*side[:count], end] for side, end in zip(sides, ends, strict=True))
    return left, right


def ran(spark: SparkSession, folder: Path, sides: tuple[list[list[Event]], list[list[Event]]], **how: Any) -> Ran:
    pipeline = Pipeline("joins", spark=spark, checkpoints=str(folder / "checkpoints"))
    left, right = (
        pipeline.of(read_batches(spark, write_batches(folder / name, side)), time="at", watermark=f"{delay_ms} ms")
        for name, side, delay_ms in zip(("left", "right"), sides, DELAYS_MS, strict=True)
    )
    near = (f"{BEFORE_MS} ms", f"{AFTER_MS} ms")
    left.join(right, on="key", within=near, prefix="other_", **how).to("results")
    return run(pipeline)


def pairs(ran: Ran) -> Counter[Any]:
    """Read results; rows that only move the watermark are left out."""
    found: Counter[Any] = Counter()
    for told in records_of(ran, "results"):
        sides = [
            Event(told["key"], told[f"{prefix}number"], micros(told[f"{prefix}at"])) if f"{prefix}at" in told else None
            for prefix in ("", "other_")
        ]
        if not told["key"].endswith("end"):
            found[tuple(sides)] += 1
    return found


def records_of(ran: Ran, topic: str) -> list[dict[str, Any]]:
    every = [record for records in ran.records.values() for record in records]
    return [json.loads(record["value"]) for record in every if record["topic"] == topic]


def expected(
    sides: tuple[list[list[Event]], list[list[Event]]], how: str, *, lateness_ms: int = 0
) -> tuple[Counter[Any], list[Any]]:
    left_ms, right_ms = (delay_ms + lateness_ms for delay_ms in DELAYS_MS)
    found, late = joined(*sides, delay_ms=(left_ms, right_ms), before_ms=BEFORE_MS, after_ms=AFTER_MS, how=how)
    return Counter({pair: count for pair, count in found.items() if not (pair[0] or pair[1]).key.endswith("end")}), late


@pytest.mark.parametrize("how", ["inner", "left", "full"])
def test_late_rows_are_dropped_and_counted(spark: SparkSession, tmp_path: Path, how: str) -> None:
    sides = made(1)
    told = ran(spark, tmp_path, sides, how=how)
    results, late = expected(sides, how)
    assert pairs(told) == results
    assert sum(counts.late for counts in told.counts.values()) == len(late) > 0
    for counts in told.counts.values():
        assert counts.rows == counts.timeless + counts.in_time + counts.late
    assert [counts.rows for counts in told.counts.values()] == [sum(map(len, side)) for side in sides]
    assert told.dropped == 0


@pytest.mark.parametrize("how", ["inner", "left", "full"])
def test_late_rows_are_written_to_their_topic(spark: SparkSession, tmp_path: Path, how: str) -> None:
    sides = made(2)
    told = ran(spark, tmp_path, sides, how=how, late="side-output:late")
    results, late = expected(sides, how)
    assert pairs(told) == results
    assert Counter(
        (row["side"], Event(row["row"]["key"], row["row"]["number"], micros(row["row"]["at"])),
         micros(row["watermark"]) // 1000)
        for row in records_of(told, "late")
    ) == Counter(late)  # fmt: skip
    for row in records_of(told, "late"):
        before, after = (BEFORE_MS, AFTER_MS) if row["side"] == "left" else (AFTER_MS, BEFORE_MS)
        at = micros(row["row"]["at"])
        assert micros(row["window"]["start"]) == at - before * 1000
        assert micros(row["window"]["end"]) == at + after * 1000
    assert told.dropped == 0


def test_an_inner_join_takes_late_rows_up_to_a_lateness(spark: SparkSession, tmp_path: Path) -> None:
    sides = made(3)
    told = ran(spark, tmp_path, sides, late="recompute:15 seconds, then side-output:late")
    results, late = expected(sides, "inner", lateness_ms=15_000)
    assert pairs(told) == results
    assert results.total() > expected(sides, "inner")[0].total()
    assert Counter(
        (row["side"], row["row"]["number"], micros(row["row"]["at"])) for row in records_of(told, "late")
    ) == (Counter((side, event.number, event.at_us) for side, event, _ in late))
    assert late
    assert told.dropped == 0


def test_rows_of_either_side_of_a_full_join_are_in_windows(spark: SparkSession, tmp_path: Path) -> None:
    sides = made(4)
    pipeline = Pipeline("windows", spark=spark, checkpoints=str(tmp_path / "checkpoints"))
    left, right = (
        pipeline.of(read_batches(spark, write_batches(tmp_path / name, side)), time="at", watermark=f"{delay_ms} ms")
        for name, side, delay_ms in zip(("left", "right"), sides, DELAYS_MS, strict=True)
    )
    both = left.join(right, on="KEY", within=(f"{BEFORE_MS} ms", f"{AFTER_MS} ms"), how="full")
    counted = both.filter("true").window(tumbling("10 seconds"), by="key")
    counted.aggregate(left="count(number)", right="count(right_number)", rows="count(*)").to("results")
    found = Counter(
        {
            (told["key"], micros(told["window"]["start"])): (told["left"], told["right"], told["rows"])
            for told in records_of(run(pipeline), "results")
            if not told["key"].endswith("end")
        }
    )
    results, _ = expected(sides, "full")
    wanted: dict[tuple[str, int], tuple[int, int, int]] = {}
    for (one, other), times in results.items():
        first = one or other
        place = (first.key, first.at_us - first.at_us % (10 * SECOND_US))
        before = wanted.get(place, (0, 0, 0))
        more = (times * (one is not None), times * (other is not None), times)
        wanted[place] = tuple(a + b for a, b in zip(before, more, strict=True))
    assert found == wanted
    assert any(left == 0 for left, _, _ in wanted.values())


def test_what_knows_one_event_time_does_not_follow_a_full_join(spark: SparkSession, tmp_path: Path) -> None:
    sides = made(4)
    pipeline = Pipeline("windows", spark=spark, checkpoints=str(tmp_path / "checkpoints"))
    left, right = (
        pipeline.of(read_batches(spark, write_batches(tmp_path / name, side)), time="at", watermark="1 s")
        for name, side in zip(("left", "right"), sides, strict=True)
    )
    both = left.join(right, on="key", within="1 s", how="full")
    with pytest.raises(ValueError, match="a join cannot follow a full join"):
        both.join(right, on="key", within="1 s", prefix="more_")
    with pytest.raises(ValueError, match="needs the event times of both streams"):
        both.select("key", "at").window(tumbling("1 s"))


@pytest.mark.parametrize("how", ["inner", "left", "full"])
def test_spark_itself_drops_the_same_rows(spark: SparkSession, tmp_path: Path, how: str) -> None:
    from pyspark.sql import functions as sql

    sides = made(2)
    left, right = (
        read_batches(spark, write_batches(tmp_path / name, side)).withWatermark("at", f"{delay_ms} milliseconds")
        for name, side, delay_ms in zip(("left", "right"), sides, DELAYS_MS, strict=True)
    )
    other = right.select(*(sql.col(name).alias(f"other_{name}") for name in right.columns))
    near = sql.expr(
        f"key = other_key AND other_at >= at - interval {BEFORE_MS} milliseconds "
        f"AND other_at <= at + interval {AFTER_MS} milliseconds"
    )
    plain = left.filter("at IS NOT NULL").join(other.filter("other_at IS NOT NULL"), near, _SPARKS[how])
    pipeline = Pipeline("plain", spark=spark, checkpoints=str(tmp_path))
    pipeline.of(plain.withColumn("key", sql.coalesce("key", "other_key"))).to("results")
    told = run(pipeline)
    results, late = expected(sides, how)
    assert pairs(told) == results
    assert told.dropped == len(late) > 0


def test_names_that_come_twice_are_told_apart() -> None:
    assert right_names(["k", "at"], ["k", "at", "b"], on=["k"], prefix="r_") == {"at": "r_at", "b": "b"}
    with pytest.raises(ValueError, match="both streams have at; set a prefix for the right one's"):
        right_names(["k", "at"], ["k", "at"], on=["k"], prefix="")
    with pytest.raises(ValueError, match="both streams need the column 'k'"):
        right_names(["at"], ["k", "at"], on=["k"], prefix="")
