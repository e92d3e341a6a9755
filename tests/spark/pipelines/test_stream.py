"""Steps of streams: what they give, that they keep the event time, and what they refuse."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from riverlog.pipelines import Pipeline, Stream, session, tumbling
from riverlog.pipelines.mistakes import WrongStep
from tests.support.stream_oracle import SECOND_US, Event
from tests.support.streams import read_batches, run, write_batches

START = 1_767_225_600 * SECOND_US
ROWS = [[Event("a", 1, START), Event("b", 2, START + 1), Event("a", 3, START + 61 * SECOND_US)]]


@pytest.fixture
def pipeline(spark: SparkSession, tmp_path: Path) -> Pipeline:
    return Pipeline("steps", spark=spark, checkpoints=str(tmp_path / "checkpoints"))


@pytest.fixture
def events(pipeline: Pipeline, spark: SparkSession, tmp_path: Path) -> Stream:
    return pipeline.of(read_batches(spark, write_batches(tmp_path / "rows", ROWS)), time="at", watermark="0 s")


def values(pipeline: Pipeline) -> list[dict[str, Any]]:
    records = [record for batch in run(pipeline).records.values() for record in batch]
    return sorted((json.loads(record["value"]) for record in records), key=str)


def twice(rows: DataFrame) -> DataFrame:
    return rows.union(rows)


def test_steps_on_rows_keep_the_event_time(pipeline: Pipeline, events: Stream) -> None:
    steps = (
        events.filter("number > 0")
        .with_columns(number="number * 10")
        .map(lambda row: {**row, "key": row["key"].upper()}, "key string, number long, at timestamp")
        .flat_map(lambda row: [row] * (row["number"] // 10), "key string, number long, at timestamp")
        .map_arrow(lambda batch: batch, "key string, number long, at timestamp")
        .map_pandas(lambda frame: frame[frame["number"] < 30], "key string, number long, at timestamp")
        .apply(twice)
        .select("at", "key", half="number / 2")
    )
    steps.window(tumbling("1 minute"), by=["key"]).aggregate(total="sum(half)").filter("total > 0").to("results")
    assert steps.properties.time == "at"
    assert [(row["key"], row["total"]) for row in values(pipeline)] == [("A", 10.0), ("B", 40.0)]


def test_results_go_into_larger_windows(pipeline: Pipeline, events: Stream) -> None:
    small = events.window(tumbling("10 seconds"), by=["key"]).aggregate(total="sum(number)")
    small.window(tumbling("30 seconds")).aggregate(largest="max(total)").to("results")
    assert [row["largest"] for row in values(pipeline)] == [2]


def test_a_mistake_is_told_where_it_is_made(events: Stream) -> None:
    with pytest.raises(WrongStep, match=r"^there is no column nmber"):
        events.filter("nmber > 0")
    with pytest.raises(ValueError, match="there is no column 'shop' for the key; there are key, number, at"):
        events.apply(twice, keys=["shop"])
    assert events.apply(twice, keys=["KEY"]).properties.keys == ("key",)


def test_rows_without_their_time_have_no_windows(events: Stream) -> None:
    without = events.select("key", "number")
    with pytest.raises(ValueError, match="a window needs an event time"):
        without.window(tumbling("1 minute"))
    with pytest.raises(ValueError, match="a join needs an event time"):
        events.join(without, on="key", within="1 minute")


def test_what_cannot_be_is_refused(pipeline: Pipeline, events: Stream) -> None:
    counted = events.window(tumbling("1 minute"), late="side-output:late").count()
    with pytest.raises(ValueError, match="map cannot follow a window or join with a side output"):
        counted.map(dict, "x int")
    with pytest.raises(ValueError, match="late rows go to the topic 'late' in one transaction"):
        counted.to_console()
    with pytest.raises(ValueError, match="a session has no updates: a late row moves its bounds"):
        events.window(session("1 minute"), late="recompute:1 hour")
    with pytest.raises(ValueError, match="never late for the next"):
        events.window(tumbling("1 s")).count().window(tumbling("1 minute"), late="side-output:late")
    with pytest.raises(ValueError, match="this stream has a column called window"):
        events.with_columns(window="1").window(tumbling("1 s"))
    with pytest.raises(ValueError, match="this stream has an event time, 'at'"):
        events.watermark("at", "1 minute")
    with pytest.raises(ValueError, match="there is no join 'outer'"):
        events.join(events, on="key", within="1 s", how="outer")  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(ValueError, match="a left join cannot be recomputed: that a row has no partner is said once"):
        events.join(events, on="key", within="1 s", how="left", late="recompute:1 hour")
    assert pipeline.outputs == []
