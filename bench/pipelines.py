"""The examples of pipelines beside the same jobs on Spark's own connector; a million keys; what late rows cost.

All of it topic to topic, state in RocksDB with its changelog: riverlog exactly once, its checkpoint on the node; the
connector at least once, its checkpoint in a folder. Rows per second are those of the batches, with the one that
closes windows behind the last row, and without the start of the query.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench import clients
from bench.pipeline_jobs import JOBS, Job, moment
from bench.spark import CONNECTOR, MILLION, PARTITIONS, Meter, expect_rows, in_turn, orders, warm
from bench.spark_queries import QUERY_SECONDS_MAX, ROCKSDB, Query, add_ratio, in_folder, on_node
from bench.trial import Better, Failed, Line, Row, Trial, Values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from riverlog.pipelines import Pipeline

EXAMPLES: Final = Path(__file__).parents[1] / "examples"
ROWS_PER_SECOND: Final = 250_000
"""About what the connector does, so that it takes as long as a run should."""
KEYS: Final = 1_000_000
KEYED_ROWS_MIN: Final = 2 * KEYS
KEYED_ROWS_PER_SECOND: Final = 500_000
KEYED_BATCHES: Final = 4
LATE_ROWS_PER_SECOND: Final = 500_000
LATE_BATCHES: Final = 8
LATE_EVERY: Final = 75
"""One row in so many is late, in six of the eight batches: one of a hundred in all."""
LATE_MS: Final = 300_000
BATCH_SPAN_MS: Final = 60_000
SHAPE: Final = "sensor string, degrees double, at timestamp"
_FEW: Final = "total % 1000 = 0"
"""Which results are written: a condition on keys Spark would ask of rows, and keep no state for the others."""
POLICIES: Final = {"drop": "drop", "side": "side-output:{late}", "recompute": "recompute:1 hour"}


@dataclass(frozen=True, slots=True)
class Ran:
    """What the batches of a query took, and all of the query."""

    rows: int
    batch_seconds: float
    whole: Meter
    last: Any
    """Spark's progress of the last batch with rows."""
    late: int = 0
    """Rows that came too late for their windows."""

    def plus(self, other: "Ran") -> "Ran":
        """Return both together."""
        return Ran(
            self.rows + other.rows,
            self.batch_seconds + other.batch_seconds,
            self.whole.plus(other.whole),
            other.last,
            self.late + other.late,
        )


def example(trial: Trial, *, job: Job) -> Values:
    """Run an example over what its topics hold, and the same job by hand."""
    values: dict[str, float] = {}
    count = round(trial.seconds * ROWS_PER_SECOND)
    with contextlib.ExitStack() as stack:
        for topic in (*job.inputs, *job.outputs):
            stack.enter_context(named_topic(trial, topic))
        for topic, value in job.inputs.items():
            clients.fill(trial.node, topic, map(value, range(count)), partitions=PARTITIONS)
        ways: dict[str, Callable[[], Ran]] = {
            "riverlog": partial(_ran, trial, partial(_example_started, trial, job)),
            "connector": partial(_ran, trial, partial(_started_by_hand, trial, job)),
        }
        for name, run in ways.items():
            ran = warm(trial, f"{job.file} {name}", run)
            expect_rows(ran.rows, count * len(job.inputs))
            _enter(values, name, ran)
    add_ratio(values, "gain", "riverlog", "connector")
    return values


def million_keys(trial: Trial) -> Values:
    """Count and add up by a million keys, in four batches that each change half of them, or more."""
    values: dict[str, float] = {}
    rows = max(KEYED_ROWS_MIN, trial.seconds * KEYED_ROWS_PER_SECOND)
    with (
        orders(trial, rows=rows, value_bytes=100) as (topic, count),
        clients.fresh_topic(trial.node, partitions=PARTITIONS) as results,
    ):
        at_once = str(-(-count // KEYED_BATCHES))
        ways: dict[str, Callable[[], Ran]] = {
            "riverlog": partial(_ran, trial, partial(_keyed, trial, topic, results, at_once)),
            "connector": partial(_ran, trial, partial(_keyed_by_hand, trial, topic, results, at_once)),
        }
        for name, run in ways.items():
            ran = warm(trial, f"million keys {name}", run)
            expect_rows(ran.rows, count)
            _enter(values, name, ran)
            (state,) = ran.last["stateOperators"]
            if state["numRowsTotal"] != KEYS:
                raise Failed(f"the state has {state['numRowsTotal']} keys, and was to have {KEYS}")
            values[f"state {name}"] = state["memoryUsedBytes"] / MILLION
            values[f"commit {name}"] = state["commitTimeMs"]
    add_ratio(values, "gain", "riverlog", "connector")
    return values


def late(trial: Trial) -> Values:
    """Put readings into windows of a minute, one of a hundred five minutes late, by each policy."""
    values: dict[str, float] = {}
    count = round(trial.seconds * LATE_ROWS_PER_SECOND) // LATE_BATCHES * LATE_BATCHES
    with clients.fresh_topic(trial.node, partitions=PARTITIONS) as topic:
        at_once = count // LATE_BATCHES
        rows = (reading(number, at_once) for number in range(count))
        clients.fill(trial.node, topic, rows, partitions=PARTITIONS)
        measures = {name: partial(_late, trial, topic, policy, at_once) for name, policy in POLICIES.items()}
        there = in_turn(trial, "late", measures)
        back = {name: measure() for name, measure in reversed(measures.items())}  # so that none is always the first
        for name in POLICIES:
            ran = there[name].plus(back[name])
            expect_rows(ran.rows, 2 * count)
            if name != "recompute" and not 0.5 < ran.late / (2 * count / 100) < 1.5:
                raise Failed(f"{ran.late} of {2 * count} rows were late, and one of a hundred was to be")
            _enter(values, name, ran)
    for name in ("side", "recompute"):
        values[f"{name} time"] = values["drop"] / values[name]
        values[f"{name} CPU"] = values[f"CPU {name}"] / values["CPU drop"]
    return values


def reading(number: int, at_once: int) -> str:
    """Write a reading: a batch of so many spans a minute, so that what is five minutes late is behind the watermark.

    That is so from the third batch on: rows are judged by what was read before the batch before.
    """
    behind_ms = LATE_MS if number % LATE_EVERY == LATE_EVERY - 1 else 0
    at = moment(number * BATCH_SPAN_MS // at_once - behind_ms, step_ms=1)
    return f'{{"sensor": "s{number * 7919 % 1000}", "degrees": {number % 400 / 10}, "at": "{at}"}}'


def _late(trial: Trial, topic: str, policy: str, at_once: int) -> Ran:
    with contextlib.ExitStack() as stack:
        results, aside = (stack.enter_context(clients.fresh_topic(trial.node, partitions=PARTITIONS)) for _ in range(2))

        def defined(pipeline: "type[Pipeline]", bootstrap: str) -> "Pipeline":
            from riverlog.pipelines import tumbling

            made = pipeline("late", bootstrap=bootstrap)
            rows = made.stream(
                topic, schema=SHAPE, time="at", watermark="10 seconds", options={"maxOffsetsPerTrigger": at_once}
            )
            windows = rows.window(tumbling("1 minute"), by=["sensor"], late=policy.format(late=aside))
            windows.aggregate(degrees="avg(degrees)", readings="count(*)").to(results)
            return made

        return _ran(trial, partial(_defined, trial, defined))


def _keyed(trial: Trial, topic: str, results: str, at_once: str) -> "StreamingQuery":
    def defined(pipeline: "type[Pipeline]", bootstrap: str) -> "Pipeline":
        made = pipeline("keys", bootstrap=bootstrap)
        rows = made.stream(topic, options={"maxOffsetsPerTrigger": at_once}).select("partition", "offset")
        rows.apply(_by_key, updates=True).filter(_FEW).to(
            results, key="cast(key as string)", value="cast(total as string)"
        )
        return made

    return _defined(trial, defined)


def _by_key(rows: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as sql

    number = f"offset * {PARTITIONS} + partition"  # each key once among any million
    keyed = rows.select(sql.expr(f"({number}) * 7919 % {KEYS}").alias("key"), "offset")
    return keyed.groupBy("key").agg(sql.count("*").alias("rows"), sql.sum("offset").alias("total"))


def _keyed_by_hand(trial: Trial, topic: str, results: str, at_once: str) -> "StreamingQuery":
    def rows(spark: "SparkSession") -> "DataFrame":
        read = CONNECTOR.stream(trial, topic, spark, maxOffsetsPerTrigger=at_once)
        few = _by_key(read).filter(_FEW)
        return few.selectExpr("cast(key as string) AS key", "cast(total as string) AS value")

    query = Query(rows, lambda writer: CONNECTOR.addressed(writer, trial, topic=results), ROCKSDB, "update")
    return query.start(trial, in_folder(trial), availableNow=True)


def _example_started(trial: Trial, job: Job) -> "StreamingQuery":
    """Start an example as `riverlog pipelines run` does; of several pipelines the one whose topic is there."""
    from riverlog.pipelines.runtime.loader import pipelines_in, run_file

    def defined(_kind: "type[Pipeline]", bootstrap: str) -> "Pipeline | Callable[..., Any]":
        os.environ["RIVERLOG_BOOTSTRAP_SERVERS"] = bootstrap
        module = run_file(EXAMPLES / job.file)
        found = pipelines_in(vars(module).values())
        return found[0] if found else module.revenue_of

    return _defined(trial, defined, job)


def _defined(
    trial: Trial,
    define: "Callable[[type[Pipeline], str], Pipeline | Callable[..., Any]]",
    job: Job | None = None,
) -> "StreamingQuery":
    """Start a pipeline with a name of its own, and so with a new checkpoint on the node."""
    from riverlog.pipelines import Pipeline

    place = on_node(trial.node)
    folder, _, name = place.location.rpartition("/")
    spark = trial.workshop.spark({**place.settings, "spark.sql.streaming.checkpointLocation": folder})
    spark.createDataFrame([], "nothing long")  # this makes the session the one that pipelines find
    made = define(Pipeline, f"{trial.node.host}:{trial.node.port}")
    if not isinstance(made, Pipeline):
        assert job is not None
        return _plain(trial, job, spark, made, place.location)
    made.outputs[0] = made.outputs[0]._replace(name=name)
    (query, *_) = made.start(trigger="available-now").queries
    return query


def _plain(
    trial: Trial, job: Job, spark: "SparkSession", records: "Callable[..., DataFrame]", checkpoint: str
) -> "StreamingQuery":
    """Start an example that is written on Spark's own API."""
    from bench.spark import RIVERLOG

    (topic,), (results,) = job.inputs, job.outputs
    writer = RIVERLOG.addressed(records(RIVERLOG.stream(trial, topic, spark)).writeStream, trial, topic=results)
    query: StreamingQuery = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    return query


def _started_by_hand(trial: Trial, job: Job) -> "StreamingQuery":
    def rows(spark: "SparkSession") -> "DataFrame":
        return job.by_hand(lambda topic: CONNECTOR.stream(trial, topic, spark))

    query = Query(rows, lambda writer: CONNECTOR.addressed(writer, trial, topic=job.outputs[0]), ROCKSDB, job.mode)
    return query.start(trial, in_folder(trial), availableNow=True)


def _ran(trial: Trial, start: "Callable[[], StreamingQuery]") -> Ran:
    """Run a query until it has taken what is there."""
    from riverlog.pipelines.runtime.progress_line import late_rows

    with Meter() as meter:
        query = start()
        if not query.awaitTermination(QUERY_SECONDS_MAX):
            query.stop()
            raise Failed(f"the query did not end within {QUERY_SECONDS_MAX} s")
    progress = query.recentProgress
    batch_ms = sum(each["durationMs"]["triggerExecution"] for each in progress)
    with_rows = [each for each in progress if each["numInputRows"]]
    late = sum(map(late_rows, progress))
    return Ran(sum(each["numInputRows"] for each in with_rows), batch_ms / 1e3, meter, with_rows[-1], late)


def _enter(values: dict[str, float], name: str, ran: Ran) -> None:
    values[name] = ran.rows / MILLION / ran.batch_seconds
    values[f"CPU {name}"] = ran.whole.cpu_seconds / (ran.rows / MILLION)


@contextlib.contextmanager
def named_topic(trial: Trial, name: str) -> Iterator[str]:
    """Create a topic with the name that an example has for it; delete it in the end."""
    with clients.fresh_topic(trial.node, partitions=PARTITIONS, name=name) as topic:
        yield topic


def _beside_connector(*more: Row, reach: float | None = None) -> tuple[Row, ...]:
    return (
        Row("riverlog", "M rows/s", Better.HIGHER),
        Row("connector", "M rows/s", Better.HIGHER),
        Row("gain", "x", Better.HIGHER, own_reach=reach),
        Row("CPU riverlog", "s/M rows", Better.LOWER),
        Row("CPU connector", "s/M rows", Better.LOWER),
        *more,
    )


ABOUT: Final[Mapping[str, str]] = {
    "revenue": "orders to revenue by shop and ten minutes, on Spark's own API",
    "visits": "clicks to visits: sessions",
    "payments": "orders joined with their payments",
    "sensors": "means of 1,000 sensors by minute, late rows dropped and counted",
    "accounts": "balances of 20,000 accounts, every change",
    "order-view": "a view of orders, a new one every third event, every change",
}
LINES: Final = (
    *(
        Line(
            f"pipelines-{name}",
            f"examples/{job.file}, {ABOUT[name]}, and the same by hand on the connector",
            partial(example, job=job),
            _beside_connector(reach=2.0 if name == "sensors" else None),
            ours_only=True,
        )
        for name, job in JOBS.items()
    ),
    Line(
        "pipelines-million-keys",
        "rows counted and added up by a million keys, in four batches, and the same on the connector",
        million_keys,
        _beside_connector(
            *(
                Row(f"{what} {way}", unit, Better.NEITHER)
                for what, unit in (("state", "MB"), ("commit", "ms"))
                for way in ("riverlog", "connector")
            )
        ),
        ours_only=True,
    ),
    Line(
        "pipelines-late",
        "JSON into windows of a minute, one row of a hundred five minutes late: dropped, a side output, recomputed",
        late,
        (
            *(Row(name, "M rows/s", Better.HIGHER) for name in POLICIES),
            Row("side time", "of drop", Better.LOWER, own_reach=1.15),
            Row("recompute time", "of drop", Better.LOWER),
            *(Row(f"CPU {name}", "s/M rows", Better.LOWER) for name in POLICIES),
            Row("side CPU", "of drop", Better.LOWER),
            Row("recompute CPU", "of drop", Better.LOWER),
        ),
        ours_only=True,
    ),
)
