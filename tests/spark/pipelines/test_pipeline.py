"""Whole pipelines: outputs and their names, starting and stopping, counts."""

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from riverlog.pipelines import Counts, Pipeline, Stream, tumbling
from tests.support.stream_oracle import SECOND_US, Event
from tests.support.streams import read_batches, write_batches
from tests.support.waiting import until

START = 1_767_225_600 * SECOND_US
LATER = START + 1_000 * SECOND_US
ROWS = [
    [Event("a", 1, START), Event("b", 2, None)],
    [Event("end", 0, LATER)],  # closes the window of the first row,
    [Event("end", 0, LATER)],
    [Event("a", 5, START)],  # and this one is too late for it
]


@pytest.fixture
def pipeline(spark: SparkSession, tmp_path: Path) -> Pipeline:
    return Pipeline("steps", spark=spark, checkpoints=str(tmp_path / "checkpoints"))


@pytest.fixture
def events(pipeline: Pipeline, spark: SparkSession, tmp_path: Path) -> Stream:
    return pipeline.of(read_batches(spark, write_batches(tmp_path / "rows", ROWS)), time="at", watermark="0 s")


def test_several_outputs_run_together_and_are_counted(
    pipeline: Pipeline, events: Stream, spark: SparkSession, tmp_path: Path
) -> None:
    events.window(tumbling("1 minute")).count().to_parquet(str(tmp_path / "counts"))
    events.select("key").to_parquet(str(tmp_path / "keys"))
    pipeline.run(trigger="available-now")
    assert [query.name for query in pipeline.queries] == ["steps", "steps-keys"]
    assert not pipeline.is_active
    assert spark.read.parquet(str(tmp_path / "keys")).count() == 5
    assert [row["count"] for row in spark.read.parquet(str(tmp_path / "counts")).collect()] == [1]
    assert pipeline.counts() == {"1 window count": Counts(rows=5, timeless=1, pairs=4, late=1)}


def test_a_query_that_fails_stops_the_others(pipeline: Pipeline, events: Stream, tmp_path: Path) -> None:
    def broken(row: dict[str, object]) -> dict[str, object]:
        raise RuntimeError(f"no use for {row['key']}")

    events.select("key").to_parquet(str(tmp_path / "keys"))
    events.map(broken, "key string").to_parquet(str(tmp_path / "broken"))
    with pytest.raises(StreamingQueryException, match="no use for a"):
        pipeline.run()
    assert not pipeline.is_active


def test_it_runs_until_it_is_stopped_and_again(pipeline: Pipeline, events: Stream, tmp_path: Path) -> None:
    events.select("key").to_parquet(str(tmp_path / "keys"))
    for _ in range(2):
        pipeline.start()
        with pytest.raises(ValueError, match="the pipeline steps runs already"):
            pipeline.start()
        until(lambda: pipeline.queries[0].lastProgress is not None, lambda: "no batch ended", seconds_max=60)
        pipeline.wait(0.01)
        assert pipeline.is_active
        pipeline.stop()
        assert not pipeline.is_active


def test_outputs_have_names_of_their_own(pipeline: Pipeline, events: Stream) -> None:
    events.to("one").to("two").to_console()
    assert [output.name for output in pipeline.outputs] == ["steps", "steps-two", "steps-console"]
    with pytest.raises(ValueError, match="two outputs would be called steps-two; give one of them a name"):
        events.to("two")
    with pytest.raises(ValueError, match="'a/b' is no name for an output"):
        events.to("two", name="a/b")
    counted = events.window(tumbling("1 s"), late="side-output:late").count().to("three")
    with pytest.raises(ValueError, match="two outputs would write late rows to 'late'"):
        counted.to("four")


def test_what_cannot_start_says_why(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'my pipeline' is no name for a pipeline"):
        Pipeline("my pipeline")
    pipeline = Pipeline("nothing", spark=spark)
    with pytest.raises(ValueError, match="the pipeline nothing has no output"):
        pipeline.start()
    with pytest.raises(ValueError, match="this DataFrame has an end"):
        pipeline.of(spark.range(1))
    with pytest.raises(ValueError, match="bad values cannot be treated by 'ignore'"):
        pipeline.stream("orders", schema="a int", bad="ignore")
    pipeline.of(read_batches(spark, write_batches(tmp_path / "rows", ROWS))).to("topic")
    with pytest.raises(ValueError, match="there is no folder for checkpoints"):
        pipeline.start()
