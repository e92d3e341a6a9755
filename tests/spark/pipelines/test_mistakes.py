"""Wrong steps on a real Spark: one sentence each, on no other channel a word."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from riverlog.pipelines import Pipeline, Stream, tumbling
from riverlog.pipelines.mistakes import WrongStep
from tests.support.stream_oracle import Event
from tests.support.streams import read_batches, write_batches


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path) -> Stream:
    pipeline = Pipeline("steps", spark=spark, checkpoints=str(tmp_path / "checkpoints"))
    rows = read_batches(spark, write_batches(tmp_path / "rows", [[Event("a", 1, 0)]]))
    return pipeline.of(rows, time="at", watermark="0 s")


def test_a_wrong_step_is_one_sentence(events: Stream, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(WrongStep, match=r"^there is no column nmber; did you mean number\?$"):
        events.filter("nmber > 0")
    with pytest.raises(WrongStep, match=r"^there is no column kay; did you mean key\?$"):
        events.window(tumbling("1 minute"), by=["kay"])
    with pytest.raises(
        WrongStep, match=r"^there is no column amount; did you mean ((number|key|at|window)(, | or |\?$)){4}"
    ):
        events.window(tumbling("1 minute"), late="side-output:late").aggregate(total="sum(amount)")
    with pytest.raises(WrongStep, match=r"^Syntax error at or near 'is': extra input 'is', in 'key is is'$"):
        events.filter("key is is")
    with pytest.raises(WrongStep, match=r"^there is no column shop; did you mean"):
        events.to("results", key="shop")
    for schema in ("key strng", {"key": "string"}):
        with pytest.raises(
            WrongStep, match=r"(Unsupported data type|Syntax error at or near|a schema is text, as in) "
        ):
            events.map(dict, schema)  # type: ignore[arg-type]
    with pytest.raises(WrongStep, match=r"^a schema is text, as in 'customer string, amount double', or a StructType"):
        events.pipeline.stream("orders", schema=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^'1 minute' is no window; write tumbling\('1 minute'\), "):
        events.window("1 minute")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^the window 60 is no length of time; write one as 10 seconds"):
        tumbling(60)  # type: ignore[arg-type]
    assert events.pipeline.outputs == []
    assert capfd.readouterr().err == ""
