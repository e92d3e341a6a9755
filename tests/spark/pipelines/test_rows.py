"""The mark of an event time: Spark's own, put on and taken off."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from riverlog.pipelines.rows import DELAY_MARK, LATE, carries_late_rows, is_timed, timed, untimed


def test_the_mark_is_what_spark_sets(spark: SparkSession) -> None:
    rows = spark.readStream.format("rate").load()
    watched = rows.withWatermark("timestamp", "7 seconds")
    assert watched.schema["timestamp"].metadata == {DELAY_MARK: 7_000}
    assert is_timed(watched, "timestamp")
    assert not is_timed(watched, "value")
    assert not is_timed(watched, "missing")
    marked = rows.select(timed(sql.col("timestamp"), "at", 7_000))
    assert marked.schema["at"].metadata == {DELAY_MARK: 7_000}
    assert not is_timed(watched.select(untimed(sql.col("timestamp"), "timestamp")), "timestamp")


def test_late_rows_are_a_column(spark: SparkSession) -> None:
    rows = spark.range(1)
    assert not carries_late_rows(rows)
    assert carries_late_rows(rows.withColumn(LATE, sql.lit(None)))
