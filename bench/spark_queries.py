"""Streaming queries for the lines: where each has its checkpoint, and how it is run.

Each way has its checkpoint where its users have it: riverlog on the node, with the settings of `riverlog.spark`; the
connector in a local folder, with Spark's defaults.
"""

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from bench.connector import CORES
from bench.nodes import BrokerProcess
from bench.spark import OURS, Meter, Way, own_settings
from bench.trial import Failed, Node, Trial

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

QUERY_SECONDS_MAX: Final = 120
POLL_SECONDS: Final = 0.002
STATE: Final = "spark.sql.streaming.stateStore"
ROCKSDB: Final = {
    f"{STATE}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{STATE}.rocksdb.changelogCheckpointing.enabled": "true",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a query has its checkpoint, and the settings that go with it."""

    location: str
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_on_node(self) -> bool:
        return self.location.startswith("webhdfs://")


def on_node(node: Node) -> Place:
    """Return a new checkpoint on a node of ours."""
    assert isinstance(node, BrokerProcess)
    return Place(f"{node.service('checkpoints')}/pipelines/bench-{uuid.uuid4().hex[:12]}", own_settings())


def in_folder(trial: Trial) -> Place:
    """Return a new checkpoint in a folder of this machine."""
    return Place(str(trial.folder / uuid.uuid4().hex[:12]))


def usual_place(trial: Trial, way: Way) -> Place:
    """Return a new checkpoint where users of this way have theirs."""
    return on_node(trial.node) if way.format == OURS else in_folder(trial)


@dataclass(frozen=True, slots=True)
class Query:
    """A stream, where it goes, and what Spark is told for it."""

    rows: "Callable[[SparkSession], DataFrame]"
    sink: Callable[[Any], Any] = lambda writer: writer.format("noop")
    settings: Mapping[str, str] = field(default_factory=dict)
    mode: str = "append"

    def start(self, trial: Trial, place: Place, **trigger: Any) -> "StreamingQuery":
        return self.start_in(self._session(trial, place), place, **trigger)

    def start_in(self, spark: "SparkSession", place: Place, **trigger: Any) -> "StreamingQuery":
        rows = self.rows(spark)
        writer = self.sink(rows.writeStream).outputMode(self.mode).option("checkpointLocation", place.location)
        query: StreamingQuery = writer.trigger(**(trigger or {"processingTime": "0 seconds"})).start()
        return query

    @contextlib.contextmanager
    def running(self, trial: Trial, place: Place) -> "Iterator[StreamingQuery]":
        """Make the query wait for more until this is left."""
        spark = self._session(trial, place)
        with _watched(spark) if place.is_on_node else contextlib.nullcontext():
            query = self.start_in(spark, place)
            try:
                yield query
            finally:
                query.stop()

    def _session(self, trial: Trial, place: Place) -> "SparkSession":
        return trial.workshop.spark({**self.settings, **place.settings})


@contextlib.contextmanager
def _watched(spark: "SparkSession") -> Iterator[None]:
    """Report to the node how the queries of a session go, as it does of all that `riverlog.spark.session` makes."""
    from riverlog.spark import watch

    watcher = watch(spark)
    try:
        yield
    finally:
        spark.streams.removeListener(watcher)
        watcher.close()


@dataclass(frozen=True, slots=True)
class Ran:
    """A query that took what was there: rows, the time of its batches, and the time of all of it."""

    rows: int
    batch_seconds: float
    whole: Meter


def run_available(trial: Trial, query: Query, place: Place) -> Ran:
    """Run a query until it has taken what is there."""
    with Meter() as meter:
        started = query.start(trial, place, availableNow=True)
        if not started.awaitTermination(QUERY_SECONDS_MAX):
            started.stop()
            raise Failed(f"the query did not end within {QUERY_SECONDS_MAX} s")
    batches = [progress for progress in started.recentProgress if progress["numInputRows"]]
    batch_ms = sum(progress["durationMs"]["triggerExecution"] for progress in batches)
    return Ran(sum(progress["numInputRows"] for progress in batches), batch_ms / 1e3, meter)


def await_batch(query: "StreamingQuery", number: int) -> None:
    """Wait until this batch is done."""
    deadline = time.monotonic() + QUERY_SECONDS_MAX
    while (progress := query.lastProgress) is None or progress["batchId"] < number:
        if (problem := query.exception()) is not None:
            raise Failed(f"the query ended: {problem}")
        if time.monotonic() > deadline:
            raise Failed(f"batch {number} was not done within {QUERY_SECONDS_MAX} s")
        time.sleep(POLL_SECONDS)


def numbers(spark: "SparkSession", per_batch: int) -> "DataFrame":
    """Return so many numbers with every batch."""
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", per_batch)
    return reader.option("numPartitions", CORES).load()


def add_ratio(values: dict[str, float], name: str, over: str, under: str) -> None:
    """Divide one number by another where both were measured."""
    if over in values:
        values[name] = values[over] / values[under]
