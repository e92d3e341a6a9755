"""Pipelines: streams of topics, what is made of them, where it goes, and the queries of Spark that do it.

    pipeline = Pipeline("revenue", bootstrap="127.0.0.1:9092")
    orders = pipeline.stream("orders", schema="customer string, amount double, at timestamp",
                             time="at", watermark="10 seconds")
    orders.window(tumbling("1 minute"), by=["customer"]).aggregate(revenue="sum(amount)").to("revenue")
    pipeline.run()

Each output is a query of its own, with a checkpoint of its own; the first has the pipeline's name. Defining a pipeline
starts nothing, and works the same in a notebook, in a file, and under `riverlog pipelines run`.
"""

import os
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, assert_never

from riverlog.pipelines.inspection.replay import CURRENT, NotReplayed
from riverlog.pipelines.lineage import Lineage
from riverlog.pipelines.mistakes import told_plainly
from riverlog.pipelines.operators.row_counts import Counts, RowCounter
from riverlog.pipelines.operators.watermarks import judged, late_watermark_ms
from riverlog.pipelines.outputs import (
    ConsoleTarget,
    CustomTarget,
    ParquetTarget,
    Target,
    TopicTarget,
    records,
    updates_to,
)
from riverlog.pipelines.runtime.queries import Running
from riverlog.pipelines.runtime.starting_offsets import beginning_at, start_of_query
from riverlog.pipelines.schemas import ddl_of, struct_of
from riverlog.pipelines.spans import Span
from riverlog.pipelines.stream import Build, Stream
from riverlog.pipelines.stream_properties import UNSTARTED, QueryContext, StreamProperties
from riverlog.spark.sessions.progress import OBSERVED

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

Starting = Literal["earliest", "latest"]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_LOCATION: Final = "spark.sql.streaming.checkpointLocation"
_DEAD_LETTER: Final = "dead-letter:"


class Output(NamedTuple):
    """A stream and where it goes: one query."""

    name: str
    stream: Stream
    target: Target


class Pipeline:
    """Streams and outputs under one name."""

    def __init__(
        self,
        name: str,
        *,
        bootstrap: str | None = None,
        spark: "SparkSession | None" = None,
        checkpoints: str | None = None,
    ) -> None:
        """Name a pipeline. `spark` is the session to use: the one that runs, or one of `riverlog.spark.session`.

        `checkpoints` is the folder for checkpoints; without it, that of the session: /pipelines on the node.
        """
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name for a pipeline; use letters, digits, dots, dashes and underscores")
        self.name = name
        self.bootstrap = bootstrap or os.environ.get("RIVERLOG_BOOTSTRAP_SERVERS")  # executors have no such variable
        self.outputs: list[Output] = []
        self._given = spark
        self._checkpoints = checkpoints
        self._operators: dict[str, str] = {}
        self._running: Running | None = None
        self._starts = 0
        self.batch = CURRENT.get()
        """The batch that is replayed; None for a pipeline that runs."""

    @cached_property
    def spark(self) -> "SparkSession":
        """The session in which its queries run."""
        from pyspark.sql import SparkSession

        if self._given is not None:
            return self._given
        if (active := SparkSession.getActiveSession()) is not None:
            return active
        from riverlog.spark.sessions.session import session

        return session(self.name, bootstrap=self.bootstrap)

    # Streams

    def stream(
        self,
        topic: str | Sequence[str],
        *,
        schema: "str | StructType | None" = None,
        time: str | None = None,
        watermark: Span = "0 seconds",
        starting: str = "earliest",
        bad: str = "fail",
        columns: Sequence[str] = (),
        options: Mapping[str, object] | None = None,
    ) -> Stream:
        """Read a topic, or several. With a schema, values are JSON and their fields are the columns.

        `bad` says what becomes of a value that is not what the schema says: fail, null, or dead-letter:TOPIC. `columns`
        are those of the record to have besides: key, topic, partition, offset, timestamp. Without a schema they are all
        there, as in Spark's Kafka source. `options` are any others of the format riverlog.
        """
        topics = [topic] if isinstance(topic, str) else list(topic)
        chosen = {"subscribe": ",".join(topics), "startingOffsets": starting}
        if self.bootstrap is not None:
            chosen["kafka.bootstrap.servers"] = self.bootstrap
        if schema is not None:
            chosen |= {
                "value.format": "json",
                "value.schema": ddl_of(schema),
                "columns": ",".join(columns),
                **_bad(bad),
            }
        chosen |= {name: str(value) for name, value in (options or {}).items()}
        lineage = Lineage(tuple(topics))
        if schema is not None:
            lineage = lineage.after(f"values as JSON{_bad_words(bad)}")
        frames: dict[tuple[str, int], DataFrame] = {}

        def build(query: QueryContext) -> "DataFrame":
            key = (query.checkpoint, self._starts)
            if key not in frames:  # what a query reads twice is one source of it
                frames[key] = self._read(chosen, query)
            return frames[key]

        return self._stream(build, lineage, time, watermark)

    def of(
        self, frame: "DataFrame", *, time: str | None = None, watermark: Span = "0 seconds", reads: Sequence[str] = ()
    ) -> Stream:
        """Take any streaming DataFrame as a stream."""
        if self.batch is not None:
            raise NotReplayed("only streams of topics can be replayed; this one is of another source")
        if not frame.isStreaming:
            raise ValueError("this DataFrame has an end; a stream is read with spark.readStream")
        return self._stream(lambda _site: frame, Lineage(tuple(reads)), time, watermark)

    # Running

    def start(self, *, trigger: str | None = None) -> "Pipeline":
        """Start a query for each output and return.

        Without a trigger, batches follow one another as data comes. "2 seconds" makes one every two seconds, and
        "available-now" takes what is there and ends.
        """
        if not self.outputs:
            raise ValueError(f"the pipeline {self.name} has no output; write a stream with to('topic')")
        if self._running is not None and self._running.is_active:
            raise ValueError(f"the pipeline {self.name} runs already; stop it first")
        self._starts += 1
        self.spark.createDataFrame([], "nothing long")  # it is this thread's session now: Spark finds sinks through it
        running = Running(self.spark, RowCounter())
        self._running = running
        try:
            for output in self.outputs:
                running.add(self._started(output, trigger))
        except BaseException:
            running.stop(finish=False)
            raise
        return self

    def run(self, *, trigger: str | None = None) -> "Pipeline":
        """Start, and wait until all queries have ended; one that fails stops the others and is raised."""
        return self.start(trigger=trigger).wait()

    def wait(self, seconds: float | None = None) -> "Pipeline":
        """Wait for the end of all queries, or for so many seconds."""
        if self._running is not None:
            self._running.wait(seconds)
        return self

    def stop(self, *, finish: bool = True) -> None:
        """Stop; with `finish`, each query ends the batch that it is at. Nothing is lost or doubled either way."""
        if self._running is not None:
            self._running.stop(finish=finish)

    @property
    def queries(self) -> "list[StreamingQuery]":
        """Its queries of Spark, since it was started."""
        return [] if self._running is None else self._running.queries

    @property
    def is_active(self) -> bool:
        """Whether a query of it runs."""
        return self._running is not None and self._running.is_active

    def counts(self) -> dict[str, Counts]:
        """Return what came to each window and join since the start, and how much of it was late."""
        if self._running is None:
            return {}
        found = self._running.counts()
        return {self._described(name): counts for name, counts in found.items()}

    def checkpoint(self, output: Output) -> str:
        """Return the location of an output's checkpoint."""
        folder = self._checkpoints or self.spark.conf.get(_LOCATION, None)
        if folder is None:
            raise ValueError(
                "there is no folder for checkpoints; name one, Pipeline(checkpoints='webhdfs://host:9870/pipelines'), "
                "or use the session of riverlog.spark.session(bootstrap='host:9092')"
            )
        return f"{folder.rstrip('/')}/{output.name}"

    # What streams call

    def add(self, stream: Stream, target: Target, name: str) -> None:
        """Take an output; ValueError where two would have one name, or write late rows twice."""
        name = name or (_default_name(self.name, target) if self.outputs else self.name)
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name for an output; use letters, digits, dots, dashes and underscores")
        if any(output.name == name for output in self.outputs):
            raise ValueError(f"two outputs would be called {name}; give one of them a name: to('topic', name='…')")
        side = stream.properties.side
        if side is not None and any(output.stream.properties.side == side for output in self.outputs):
            raise ValueError(f"two outputs would write late rows to {side.topic!r}; name another topic for one of them")
        if isinstance(target, TopicTarget):
            with told_plainly():
                self._records(stream.df, stream.properties, target)
        self.outputs.append(Output(name, stream, target))

    def observe(self, words: str) -> str:
        """Return a name for the counts of a window or a join; both sides of a join add theirs to it."""
        name = f"{OBSERVED}{len(self._operators) + 1}"
        self._operators[name] = words
        return name

    def judged(self, query: QueryContext) -> "Column":
        """Return by which watermark rows are late, `at`, in which `batch`: the one that runs, or that is replayed."""
        if self.batch is None or query.checkpoint == UNSTARTED:
            return judged(self.spark, query.checkpoint)
        from pyspark.sql import functions as sql

        at = sql.timestamp_millis(sql.lit(late_watermark_ms(query.checkpoint, self.batch.number)))
        return sql.struct(at.alias("at"), sql.lit(self.batch.number).cast("long").alias("batch"))

    def arrow_schema(self, schema: "str | StructType") -> "pa.Schema":
        """Return a schema as Arrow has it."""
        from pyspark.sql.pandas.types import to_arrow_schema

        return to_arrow_schema(struct_of(schema), timezone="UTC")

    def records(self, output: Output) -> "DataFrame":
        """Build what an output's query writes."""
        properties = output.stream.properties
        rows = output.stream.built(QueryContext(self.checkpoint(output), properties.lateness_ms))
        if not isinstance(output.target, TopicTarget):
            return rows
        return self._records(rows, properties, output.target)

    def _records(self, rows: "DataFrame", properties: StreamProperties, target: TopicTarget) -> "DataFrame":
        side_topic = None if properties.side is None else properties.side.topic
        return records(rows, target, keys=properties.keys, side_topic=side_topic)

    def _stream(self, build: Build, lineage: Lineage, time: str | None, delay: Span) -> Stream:
        stream = Stream(self, build, StreamProperties(lineage))
        with told_plainly():
            stream.df  # noqa: B018 - Spark says now what is wrong with it
        return stream if time is None else stream.watermark(time, delay)

    def _read(self, options: Mapping[str, str], query: QueryContext) -> "DataFrame":
        if self.batch is not None:
            return self.batch.frame(self.spark, options)
        begun = beginning_at(options, start_of_query(query.checkpoint))
        return self.spark.readStream.format("riverlog").options(**begun).load()

    def _started(self, output: Output, trigger: str | None) -> "StreamingQuery":
        mode = output.stream.properties.mode
        writer: Any = self.records(output).writeStream.queryName(output.name).outputMode(mode)
        writer = writer.option("checkpointLocation", self.checkpoint(output))
        if trigger is not None:
            writer = writer.trigger(
                **({"availableNow": True} if trigger == "available-now" else {"processingTime": trigger})
            )
        match output.target:
            case TopicTarget() if mode == "update":
                writer = writer.foreachBatch(updates_to(self._sink_options(output)))
            case TopicTarget():
                writer = writer.format("riverlog").options(**self._sink_options(output))
            case ConsoleTarget(rows_max):
                writer = writer.format("console").option("numRows", rows_max).option("truncate", False)
            case ParquetTarget(path, partition_by):
                writer = writer.format("parquet").option("path", path)
                writer = writer.partitionBy(*partition_by) if partition_by else writer
            case CustomTarget(configure):
                writer = configure(writer)
            case _:
                assert_never(output.target)
        query: StreamingQuery = writer.start()
        return query

    def _sink_options(self, output: Output) -> dict[str, str]:
        named = {} if self.bootstrap is None else {"kafka.bootstrap.servers": self.bootstrap}
        return {**named, "checkpointLocation": self.checkpoint(output), "queryName": output.name}

    def _described(self, observed: str) -> str:
        number, _, side = observed.removeprefix(OBSERVED).partition(":")
        words = self._operators.get(f"{OBSERVED}{number}", observed)
        return f"{number} {words}" + (f" ({side})" if side else "")


def _default_name(pipeline: str, target: Target) -> str:
    match target:
        case TopicTarget(topic):
            return f"{pipeline}-{topic}"
        case ConsoleTarget():
            return f"{pipeline}-console"
        case ParquetTarget(path):
            return f"{pipeline}-{re.sub(r'[^A-Za-z0-9._-]+', '-', path.rstrip('/').rpartition('/')[2]) or 'parquet'}"
        case CustomTarget():
            return f"{pipeline}-writer"
        case _:
            assert_never(target)


def _bad(bad: str) -> dict[str, str]:
    if bad.startswith(_DEAD_LETTER):
        return {"badValues": "dead-letter", "deadLetterTopic": bad.removeprefix(_DEAD_LETTER)}
    if bad in ("fail", "null"):
        return {"badValues": bad}
    raise ValueError(f"bad values cannot be treated by {bad!r}; write fail, null or dead-letter:TOPIC")


def _bad_words(bad: str) -> str:
    topic = bad.removeprefix(_DEAD_LETTER)
    return f", bad ones to the topic {topic}" if topic != bad else ""
