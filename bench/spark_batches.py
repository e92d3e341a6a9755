"""Queries of Spark that wait for more: how long a record takes, a batch, and a start."""

import time
from functools import partial
from statistics import median, quantiles
from typing import TYPE_CHECKING, Final

from bench import clients, nodes
from bench.clients import fresh_topic
from bench.nodes import Riverlog
from bench.spark import CONNECTOR, RIVERLOG, VALUE_BYTES, Way, orders, ways_at
from bench.spark_queries import (
    POLL_SECONDS,
    ROCKSDB,
    Place,
    Query,
    add_ratio,
    await_batch,
    in_folder,
    numbers,
    on_node,
    usual_place,
)
from bench.trial import Trial, Values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LATENCY_RATE: Final = 100
LATENCY_RUN_LENGTHS: Final = 3
"""How many times as long as others a run is in which records come by the hundred."""
FIRST_SECONDS: Final = 60.0
"""How long a query copies before its records are timed, the first time: it is one that runs for days, and for a minute
Java compiles what it does, on the cores that do it."""
SETTLING_SECONDS: Final = 3.0
"""The same, once that was done."""
BATCH_ROWS: Final = 20
FIRST_BATCHES: Final = 5
"""What a query does before its batches are timed."""
TIMED_BATCHES_MIN: Final = 5
STARTS: Final = 3


def latency(trial: Trial) -> Values:
    """Copy topic to topic at 100 records/s; each record's time from its producer to a consumer of the copy."""
    values: dict[str, float] = {}
    for way in ways_at(trial, RIVERLOG, CONNECTOR):
        percentiles = quantiles(_copied(trial, way), n=100, method="inclusive")
        values |= {f"p50 {way.name}": percentiles[49], f"p99 {way.name}": percentiles[98]}
    for percentile in ("p50", "p99"):
        add_ratio(values, f"{percentile} ratio", f"{percentile} {RIVERLOG.name}", f"{percentile} {CONNECTOR.name}")
    return values


def _copied(trial: Trial, way: Way) -> list[float]:
    timed = trial.seconds * LATENCY_RUN_LENGTHS
    before = FIRST_SECONDS if trial.workshop.is_new(f"latency {way.name}") else SETTLING_SECONDS
    with fresh_topic(trial.node) as topic, fresh_topic(trial.node) as copy:
        query = Query(
            lambda spark: way.stream(trial, topic, spark).select("key", "value"),
            lambda writer: way.addressed(writer, trial, topic=copy),
        )
        with query.running(trial, usual_place(trial, way)):
            latencies = clients.end_to_end_latencies(
                trial.node, topic, rate=LATENCY_RATE, value_bytes=VALUE_BYTES, seconds=before + timed, copy=copy
            )
    return latencies[-round(LATENCY_RATE * timed) :]


def batches(trial: Trial, *, stateful: bool) -> Values:
    """Run batches of 20 rows, one after the other, the checkpoint on the node, in a folder, on a node that flushes."""
    query = Query(_counted, settings=ROCKSDB, mode="update") if stateful else Query(_few_numbers)
    assert isinstance(trial.contender, Riverlog)
    with nodes.running(trial.contender.flushing(), trial.folder / "flushing") as flushing:
        values = {
            name: _batch_ms(trial, query, place())
            for name, place in {
                "node": partial(on_node, trial.node),
                "folder": partial(in_folder, trial),
                "fsync": partial(on_node, flushing),
            }.items()
        }
    add_ratio(values, "node ratio", "node", "folder")
    add_ratio(values, "fsync ratio", "fsync", "folder")
    return values


def _batch_ms(trial: Trial, query: Query, place: Place) -> float:
    """Return the median of a batch's time, without the first ones."""
    with query.running(trial, place) as started:
        await_batch(started, FIRST_BATCHES)
        deadline = time.monotonic() + trial.seconds
        await_batch(started, FIRST_BATCHES + TIMED_BATCHES_MIN)
        while time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        timed = [each for each in started.recentProgress if each["batchId"] >= FIRST_BATCHES and each["numInputRows"]]
    return float(median(each["durationMs"]["triggerExecution"] for each in timed))


def _few_numbers(spark: "SparkSession") -> "DataFrame":
    return numbers(spark, BATCH_ROWS)


def _counted(spark: "SparkSession") -> "DataFrame":
    from pyspark.sql.functions import window

    rows = _few_numbers(spark).withWatermark("timestamp", "10 seconds")
    return rows.groupBy(window("timestamp", "10 seconds"), (rows.value % BATCH_ROWS).alias("key")).count()


def start(trial: Trial) -> Values:
    """Start queries over a topic that holds little, and see when their first batch is done."""
    values: dict[str, float] = {}
    with orders(trial, rows=1, value_bytes=VALUE_BYTES) as (topic, _):
        for way in ways_at(trial, RIVERLOG, CONNECTOR):
            query = Query(partial(way.stream, trial, topic))
            times = [_first_batch_seconds(trial, query, usual_place(trial, way)) for _ in range(STARTS)]
            values[way.name] = median(times)
    add_ratio(values, "ratio", RIVERLOG.name, CONNECTOR.name)
    return values


def _first_batch_seconds(trial: Trial, query: Query, place: Place) -> float:
    begin = time.monotonic()
    with query.running(trial, place) as started:
        await_batch(started, 0)
        return time.monotonic() - begin
