"""What windows and joins keep is read from the checkpoint, side by side for joins."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from riverlog.pipelines import Pipeline, tumbling
from riverlog.pipelines.inspection.states import read_state
from tests.support.stream_oracle import SECOND_US, Event
from tests.support.streams import read_batches, run, write_batches

ROWS = [Event("a", 1, 60 * SECOND_US), Event("a", 2, 70 * SECOND_US), Event("b", 5, 70 * SECOND_US)]


@pytest.fixture
def pipeline(spark: SparkSession, tmp_path: Path) -> Pipeline:
    return Pipeline("kept", spark=spark, checkpoints=str(tmp_path / "checkpoints"))


def test_open_windows_have_their_sums_so_far(spark: SparkSession, pipeline: Pipeline, tmp_path: Path) -> None:
    rows = pipeline.of(read_batches(spark, write_batches(tmp_path / "rows", [ROWS])), time="at", watermark="1 minute")
    rows.window(tumbling("1 minute"), by=["key"]).aggregate(total="sum(number)").to("totals")
    run(pipeline)
    (state,) = read_state(spark, pipeline.checkpoint(pipeline.outputs[0]))
    assert state.about() == {"operator": 0, "name": "stateStoreSave"}
    found = {row.key["key"]: row.value[0] for row in state.frame.collect()}
    assert found == {"a": 3, "b": 5}
    assert list(read_state(spark, pipeline.checkpoint(pipeline.outputs[0]), operator=7)) == []


def test_rows_wait_for_their_partners_on_both_sides(spark: SparkSession, pipeline: Pipeline, tmp_path: Path) -> None:
    left = pipeline.of(read_batches(spark, write_batches(tmp_path / "left", [ROWS])), time="at", watermark="1 minute")
    right = pipeline.of(
        read_batches(spark, write_batches(tmp_path / "right", [ROWS[2:]])), time="at", watermark="1 minute"
    )
    left.join(right, on="key", within="10 seconds").to("pairs")
    run(pipeline)
    states = list(read_state(spark, pipeline.checkpoint(pipeline.outputs[0])))
    assert [state.about()["side"] for state in states] == ["left", "right"]
    assert [sorted(row.value[1] for row in state.frame.collect()) for state in states] == [[1, 2, 5], [5]]
