"""Queries that are waited for and stopped together."""

from pathlib import Path

from pyspark.sql import SparkSession

from riverlog.pipelines.operators.row_counts import RowCounter
from riverlog.pipelines.runtime.queries import Running
from tests.support.waiting import until


def test_a_stop_lets_the_batch_end(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    running = Running(spark, RowCounter())
    running.add(rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start())
    until(lambda: len(running.queries[0].recentProgress) > 1, lambda: "no batch ended", seconds_max=60)
    for seconds in (0.5, 0.0001, 0.0):  # Spark waits for no less than a millisecond
        running.wait(seconds)
    assert running.is_active
    running.stop(finish=True)
    assert not running.is_active
    begun, ended = (
        sorted(int(path.name) for path in (tmp_path / log).glob("[0-9]*")) for log in ("offsets", "commits")
    )
    assert ended[-1] >= begun[-1] - 1
    assert running.counts() == {}
