"""Topics as streams of Spark, through queries that take what is there and end."""

from functools import partial
from typing import TYPE_CHECKING, Final

from bench.clients import fresh_topic
from bench.spark import (
    CONNECTOR,
    MILLION,
    ORDER_SCHEMA,
    PARTITIONS,
    RIVERLOG,
    VALUE_BYTES,
    Way,
    expect_rows,
    expect_written,
    in_turn,
    orders,
    ways_at,
    written_columns,
)
from bench.spark_queries import ROCKSDB, Query, Ran, add_ratio, numbers, run_available, usual_place
from bench.trial import Trial, Values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READ_ROWS_PER_SECOND: Final = 1_000_000
PARSED_ROWS_PER_SECOND: Final = 300_000
WRITTEN_ROWS_PER_SECOND: Final = 600_000
"""About what the connector does, so that it takes as long as a run should."""


def stream(trial: Trial) -> Values:
    """Bring what a topic holds to a sink that forgets it, as a stream."""
    values: dict[str, float] = {}
    rows = trial.seconds * READ_ROWS_PER_SECOND
    with orders(trial, rows=rows, value_bytes=VALUE_BYTES) as (topic, count):
        measures = {
            way.name: partial(_taken, trial, way, Query(partial(way.stream, trial, topic)), count)
            for way in ways_at(trial, RIVERLOG, CONNECTOR)
        }
        for name, ran in in_turn(trial, "stream", measures).items():
            values[name] = count / MILLION / ran.batch_seconds
            values[f"whole {name}"] = count / MILLION / ran.whole.seconds
            values[f"CPU {name}"] = ran.whole.cpu_seconds / (count / MILLION)
    for part in ("", "whole "):
        add_ratio(values, f"{part}gain", f"{part}{RIVERLOG.name}", f"{part}{CONNECTOR.name}")
    return values


def windows(trial: Trial) -> Values:
    """Count and add up the orders of each customer in windows of 10 s, from JSON."""
    values: dict[str, float] = {}
    rows = trial.seconds * PARSED_ROWS_PER_SECOND
    with orders(trial, rows=rows, value_bytes=VALUE_BYTES) as (topic, count):
        measures = {}
        for way in ways_at(trial, RIVERLOG, CONNECTOR):
            query = Query(partial(_revenue, trial, way, topic), settings=ROCKSDB, mode="update")
            measures[way.name] = partial(_taken, trial, way, query, count)
        for name, ran in in_turn(trial, "windows", measures).items():
            values[name] = count / MILLION / ran.batch_seconds
            values[f"CPU {name}"] = ran.whole.cpu_seconds / (count / MILLION)
    add_ratio(values, "gain", RIVERLOG.name, CONNECTOR.name)
    return values


def _taken(trial: Trial, way: Way, query: Query, count: int) -> Ran:
    """Run a query that takes so many rows."""
    ran = run_available(trial, query, usual_place(trial, way))
    expect_rows(ran.rows, count)
    return ran


def _revenue(trial: Trial, way: Way, topic: str, spark: "SparkSession") -> "DataFrame":
    """Decode orders as a program would: riverlog's in the source, the connector's by an expression of Spark."""
    from pyspark.sql.functions import col, count, from_json, sum, window

    if way is RIVERLOG:
        decoded = way.stream(
            trial, topic, spark, **{"columns": "timestamp", "value.format": "json", "value.schema": ORDER_SCHEMA}
        )
    else:
        order = from_json(col("value").cast("string"), ORDER_SCHEMA).alias("order")
        decoded = way.stream(trial, topic, spark).select("timestamp", order).select("timestamp", "order.*")
    windowed = decoded.withWatermark("timestamp", "10 seconds").groupBy(window("timestamp", "10 seconds"), "customer")
    return windowed.agg(count("*"), sum("amount"))


def write(trial: Trial) -> Values:
    """Write rows of 100 B, one batch of a stream, to a topic of four partitions."""
    count = round(trial.seconds * WRITTEN_ROWS_PER_SECOND)
    values: dict[str, float] = {}
    measures = {way.name: partial(_write, trial, way, count) for way in ways_at(trial, RIVERLOG, CONNECTOR)}
    for name, ran in in_turn(trial, "write stream", measures).items():
        values[name] = count / MILLION / ran.whole.seconds
        values[f"CPU {name}"] = ran.whole.cpu_seconds / (count / MILLION)
    add_ratio(values, "gain", RIVERLOG.name, CONNECTOR.name)
    return values


def _write(trial: Trial, way: Way, count: int) -> Ran:
    with fresh_topic(trial.node, partitions=PARTITIONS) as topic:
        query = Query(
            lambda spark: numbers(spark, count).selectExpr(*written_columns("value")),
            lambda writer: way.addressed(writer, trial, topic=topic),
        )
        ran = run_available(trial, query, usual_place(trial, way))
        expect_rows(ran.rows, count)
        expect_written(trial, topic, count)
    return ran
