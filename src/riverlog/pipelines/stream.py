"""Streams: DataFrames of Spark with an event time, windows, joins and outputs. Every step gives a new stream.

    paid = orders.filter("amount > 0").window(tumbling("1 minute"), by=["customer"])
    paid.aggregate(revenue="sum(amount)").to("revenue")

`stream.df` is the DataFrame, and `stream.apply(function)` takes any function from DataFrame to DataFrame, so nothing of
Spark is out of reach. A step is checked by Spark when it is written, not when the pipeline starts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import functions as sql

from riverlog.pipelines.mistakes import column, told_plainly
from riverlog.pipelines.names import column_of
from riverlog.pipelines.operators import joins
from riverlog.pipelines.operators import windowing as windowed
from riverlog.pipelines.operators.late_rows import Drop, Policy, Recompute, SideOutput, late_words, policy
from riverlog.pipelines.operators.windows import Session, Window, check_window, words_of
from riverlog.pipelines.outputs import ConsoleTarget, CustomTarget, ParquetTarget, Target, TopicTarget
from riverlog.pipelines.row_functions import EachBatch, EachRow, Row, one
from riverlog.pipelines.rows import LATE, carries_late_rows, is_timed, timed
from riverlog.pipelines.spans import Span, interval, span_ms
from riverlog.pipelines.stream_properties import UNSTARTED, QueryContext, StreamProperties

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from riverlog.pipelines.pipeline import Pipeline

Build = Callable[[QueryContext], "DataFrame"]


class Stream:
    """Rows that keep coming. Made by `Pipeline.stream`, and by every step."""

    def __init__(self, pipeline: "Pipeline", build: Build, properties: StreamProperties) -> None:
        self.pipeline = pipeline
        self.properties = properties
        self.built = build
        """Builds the DataFrame for a query."""

    @cached_property
    def df(self) -> "DataFrame":
        """The DataFrame, to look at: its schema, its plan. A query gets one of its own, built in the same way."""
        return self.built(QueryContext())

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return [name for name in self.df.columns if name != LATE]

    def __repr__(self) -> str:
        return f"<stream of {', '.join(self.properties.lineage.topics) or 'rows'}: {', '.join(self.columns)}>"

    # Steps on each row

    def filter(self, condition: "str | Column") -> "Stream":
        """Keep rows for which the condition, SQL or a Column, is true."""
        wanted = column(condition)

        def step(rows: "DataFrame", _site: QueryContext) -> "DataFrame":
            return rows.filter(sql.col(LATE).isNotNull() | wanted if carries_late_rows(rows) else wanted)

        return self._then(step, f"filter {condition}")

    def select(self, *columns: "str | Column", **named: "str | Column") -> "Stream":
        """Keep these columns and make the named ones: `select("customer", total="price * pieces")`."""
        chosen = [column(each) for each in columns]
        chosen += [column(made).alias(name) for name, made in named.items()]

        def step(rows: "DataFrame", _site: QueryContext) -> "DataFrame":
            return rows.select(*chosen, *([LATE] if carries_late_rows(rows) else []))

        return self._then(step, f"select {', '.join([*map(str, columns), *named])}")

    def with_columns(self, **named: "str | Column") -> "Stream":
        """Add columns, or replace those of the same name: `with_columns(total="price * pieces")`."""
        made = {name: column(expression) for name, expression in named.items()}
        return self._then(lambda rows, _site: rows.withColumns(made), f"with {', '.join(named)}")

    def map(self, function: Callable[[Row], Mapping[str, Any]], schema: "str | StructType") -> "Stream":
        """Map each row, a dict, to another one by a Python function; the schema says which columns it has."""
        return self._mapped(one(function), schema, "map", function)

    def flat_map(self, function: Callable[[Row], Iterable[Mapping[str, Any]]], schema: "str | StructType") -> "Stream":
        """Map each row to none, one or several by a Python function."""
        return self._mapped(function, schema, "flat-map", function)

    def map_arrow(self, function: Callable[[Any], Any], schema: "str | StructType") -> "Stream":
        """Map each pyarrow.RecordBatch to another one, without a Python call for each row."""
        self.properties.refuse_side("map_arrow")
        return self._in_workers(EachBatch(function), schema, f"map {_name(function)}")

    def map_pandas(self, function: Callable[[Any], Any], schema: "str | StructType") -> "Stream":
        """Map each pandas.DataFrame to another one."""
        self.properties.refuse_side("map_pandas")
        return self._in_workers(EachBatch(function), schema, f"map {_name(function)}", in_pandas=True)

    def apply(
        self, function: "Callable[[DataFrame], DataFrame]", *, keys: Sequence[str] = (), updates: bool = False
    ) -> "Stream":
        """Do anything that Spark can: the function is given the DataFrame and gives another.

        `keys` are the columns that identify a result, and become the key of its record. `updates` is for
        aggregates without a window: each is written whenever it changes.
        """
        self.properties.refuse_side("apply")
        made = self._then(lambda rows, _site: function(rows), _name(function))
        if updates:
            made.properties = replace(made.properties, mode="update")
        if keys:
            named = {key: column_of(made.df, key) for key in keys}
            for key, name in named.items():
                if name is None:
                    raise ValueError(f"there is no column {key!r} for the key; there are {', '.join(made.columns)}")
            made.properties = replace(made.properties, keys=tuple(name for name in named.values() if name is not None))
        return made

    def union(self, other: "Stream") -> "Stream":
        """Put the rows of another stream beside these; columns by name."""
        for each in (self, other):
            each.properties.refuse_side("union")
        properties = self.properties.beside(other.properties)
        return self._checked(lambda query: self.built(query).unionByName(other.built(query)), properties)

    # Time

    def watermark(self, time: str, delay: Span) -> "Stream":
        """Take a column as the event time; rows may come this much later than the newest before they are late."""
        if self.properties.time is not None:
            raise ValueError(f"this stream has an event time, {self.properties.time!r}; name one only, where it begins")
        delay_ms = span_ms(delay, "the watermark", least=0)
        time = column_of(self.df, time) or time
        properties = replace(self.properties, time=time, delay_ms=delay_ms).after(f"watermark {time} - {delay}")

        def build(query: QueryContext) -> "DataFrame":
            return self.built(query).withWatermark(time, interval(delay_ms + query.lateness_ms))

        return self._checked(build, properties)

    def window(
        self,
        window: Window,
        *,
        by: Sequence[str] = (),
        late: Policy | str = "drop",
        emit: Literal["final", "updates"] = "final",
    ) -> "Windowed":
        """Put rows into windows, for each value of `by` its own; `late` says what becomes of late ones.

        Results come once, when the watermark has passed the end of their window, or with `emit="updates"` whenever they
        change. The policy `recompute` has updates in any case.
        """
        self.properties.need_time("a window")
        self.properties.need_other_time("a window")
        self.properties.refuse_side("a window")
        check_window(window)
        chosen = policy(late)
        if self.properties.is_result and chosen != Drop():
            raise ValueError("results of a window or a join are never late for the next; say there what late rows do")
        if windowed.WINDOW in self.columns and not self.properties.is_result:
            raise ValueError("this stream has a column called window, as the windows are; give it another name before")
        if emit not in ("final", "updates"):
            raise ValueError(f"there is no emit {emit!r}; write final or updates")
        if isinstance(window, Session) and (emit == "updates" or isinstance(chosen, Recompute)):
            raise ValueError(
                "a session has no updates: a late row moves its bounds or makes two sessions one, and nothing would "
                "tell readers which results that replaces; let rows come later by a longer watermark, or write late "
                "ones to a side output"
            )
        keys = [self._key(name) for name in ([by] if isinstance(by, str) else by)]
        return Windowed(self, window, tuple(keys), chosen, updates=emit == "updates")

    def join(
        self,
        other: "Stream",
        *,
        on: str | Sequence[str],
        within: Span | tuple[Span, Span],
        how: joins.How = "inner",
        prefix: str = "right_",
        late: Policy | str = "drop",
    ) -> "Stream":
        """Join rows that have the same keys and are near in time: at most `within` before or after each other.

        A pair of spans says how long before and how long after this stream's row the other's may be. A left or full
        join gives rows without a partner once the watermark says that none can come. Columns of the other stream that
        this one has, too, get the prefix. With the policy `recompute` an inner join takes rows that much later.
        """
        on = [on] if isinstance(on, str) else list(on)
        if how not in ("inner", "left", "full"):
            raise ValueError(f"there is no join {how!r}; write inner, left or full")
        if not on:
            raise ValueError("a join needs columns that are equal on both sides: on=['order']")
        before, after = within if isinstance(within, tuple) else (within, within)
        before_ms, after_ms = (span_ms(each, "the join window", least=0) for each in (before, after))
        chosen = policy(late)
        if isinstance(chosen, Recompute) and how != "inner":
            raise ValueError(
                f"a {how} join cannot be recomputed: that a row has no partner is said once, and nothing takes it back "
                "when a late one comes; let rows come later by a longer watermark, write late ones to a side output, "
                "or make it an inner join"
            )
        is_plain = self.properties.is_result or other.properties.is_result
        for each in (self, other):
            each.properties.need_time("a join")
            each.properties.refuse_side("a join")
            each.properties.refuse_full("a join")
        on = [column_of(self.df, name) or name for name in on]
        names = joins.right_names(self.columns, other.columns, on=on, prefix=prefix)
        other_time = names[other.properties.need_time("a join")]
        if is_plain and chosen != Drop():
            raise ValueError("results of a window or a join are never late for the next; say there what late rows do")
        lateness_ms = chosen.lateness_ms if isinstance(chosen, Recompute) else 0
        beyond = chosen.beyond if isinstance(chosen, Recompute) else chosen
        side = beyond if isinstance(beyond, SideOutput) else None
        observed = self.pipeline.observe(f"join {', '.join(on)}")

        def build(query: QueryContext) -> "DataFrame":
            mine, others = self.properties, other.properties
            left = joins.Side(
                "left", self.built(query), mine.need_time("a join"), mine.delay_ms + query.lateness_ms,
                before_ms, after_ms,
            )  # fmt: skip
            right = joins.Side(
                "right", other.built(query), others.need_time("a join"), others.delay_ms + query.lateness_ms,
                after_ms, before_ms,
            )  # fmt: skip
            return joins.joined(
                left, right, on=on, how=how, prefix=prefix, side=side, observed=observed,
                watermark=None if is_plain else self.pipeline.judged(query)["at"],
            )  # fmt: skip

        properties = StreamProperties(
            lineage=self.properties.lineage.after(
                f"{how} join on {', '.join(on)} within {_within(within)}{late_words(chosen)}", other.properties.lineage
            ),
            time=self.properties.time,
            delay_ms=self.properties.delay_ms,
            keys=tuple(on),
            side=side,
            is_result=True,
            is_full=how == "full",
            other_time=other_time if how == "full" else None,
            lateness_ms=max(lateness_ms, self.properties.lateness_ms, other.properties.lateness_ms),
        )
        return self._checked(build, properties)

    # Outputs

    def to(
        self, topic: str, *, key: "str | Column | None" = None, value: "str | Column | None" = None, name: str = ""
    ) -> "Stream":
        """Write to a topic, exactly once: JSON, keyed by window and keys, unless `key` and `value` say otherwise."""
        return self._written(TopicTarget(topic, key, value), name)

    def to_console(self, *, rows_max: int = 20, name: str = "") -> "Stream":
        """Show what comes out in the terminal."""
        return self._written(ConsoleTarget(rows_max), name)

    def to_parquet(self, path: str, *, partition_by: Sequence[str] = (), name: str = "") -> "Stream":
        """Write Parquet files into a folder."""
        return self._written(ParquetTarget(path, tuple(partition_by)), name)

    def to_writer(self, configure: Callable[[Any], Any], *, name: str = "") -> "Stream":
        """Write by anything of Spark: the function is given the DataStreamWriter, and gives it back configured."""
        return self._written(CustomTarget(configure), name)

    def _written(self, target: Target, name: str) -> "Stream":
        side = self.properties.side
        if side is not None and not isinstance(target, TopicTarget):
            raise ValueError(
                f"late rows go to the topic {side.topic!r} in one transaction with the results, so these go "
                "to a topic, too: call to('results'), and read that for other outputs"
            )
        self.pipeline.add(self, target, name)
        return self

    def _mapped(
        self,
        function: Callable[[Row], Iterable[Mapping[str, Any]]],
        schema: "str | StructType",
        what: str,
        named: Callable[..., Any],
    ) -> "Stream":
        self.properties.refuse_side(what)
        arrow = self.pipeline.arrow_schema(schema)
        return self._in_workers(EachRow(function, arrow), schema, f"{what} {_name(named)}")

    def _in_workers(
        self, step: "EachRow | EachBatch", schema: "str | StructType", words: str, *, in_pandas: bool = False
    ) -> "Stream":
        """Run a step in workers of Spark; where a batch is replayed, in this process."""

        def mapped(rows: "DataFrame", query: QueryContext) -> "DataFrame":
            batch = self.pipeline.batch
            if batch is None or query.checkpoint == UNSTARTED:
                return (rows.mapInPandas if in_pandas else rows.mapInArrow)(step, schema)
            return (batch.mapped_pandas if in_pandas else batch.mapped)(rows, step, schema)

        return self._then(mapped, words)

    def _then(self, step: "Callable[[DataFrame, QueryContext], DataFrame]", words: str) -> "Stream":
        """Return the stream with one more step, which keeps the event time if it keeps its column."""

        def build(query: QueryContext) -> "DataFrame":
            return _timed(step(self.built(query), query), self.properties, query)

        made = self._checked(build, self.properties.after(words))
        keys = [column_of(made.df, key) for key in self.properties.keys]
        made.properties = replace(
            made.properties,
            time=column_of(made.df, self.properties.time),
            other_time=column_of(made.df, self.properties.other_time),
            keys=tuple(key for key in keys if key is not None),
        )
        return made

    def _key(self, name: str) -> str:
        """Return what a column of a window's keys is called; WrongStep where there is none."""
        if known := column_of(self.df, name):
            return known
        with told_plainly():
            self.df.select(name)  # a field of a struct, or nothing
        return name

    def _checked(self, build: Build, properties: StreamProperties) -> "Stream":
        made = Stream(self.pipeline, build, properties)
        with told_plainly():
            made.df  # noqa: B018 - Spark says now what is wrong with it
        return made


class Windowed:
    """A stream in windows; what to compute in them is missing yet."""

    def __init__(self, stream: Stream, window: Window, by: tuple[str, ...], late: Policy, *, updates: bool) -> None:
        self._stream = stream
        self._window = window
        self._by = by
        self._late = late
        self._updates = updates

    def aggregate(self, **aggregates: "str | Column") -> Stream:
        """Compute these in each window: `aggregate(revenue="sum(amount)", orders="count(*)")`."""
        if not aggregates:
            raise ValueError("name what to compute: aggregate(orders='count(*)')")
        properties, pipeline = self._stream.properties, self._stream.pipeline
        found = {name: column(each) for name, each in aggregates.items()}
        lateness_ms = self._late.lateness_ms if isinstance(self._late, Recompute) else 0
        beyond = self._late.beyond if isinstance(self._late, Recompute) else self._late
        side = beyond if isinstance(beyond, SideOutput) else None
        observed = pipeline.observe(f"window {', '.join(aggregates)}")
        is_updated = self._updates or isinstance(self._late, Recompute)

        def build(query: QueryContext) -> "DataFrame":
            windowing = windowed.Windowing(
                self._window, properties.need_time("a window"), properties.delay_ms + query.lateness_ms, self._by
            )
            rows = self._stream.built(query)
            if properties.is_result:
                rows, time = joins.with_either_time(rows, properties, windowing.delay_ms)
                return windowed.chained(rows, windowing._replace(time=time), found)
            return windowed.aggregated(
                rows, windowing, found, judged=pipeline.judged(query), side=side, observed=observed, updates=is_updated
            )

        made = StreamProperties(
            lineage=properties.lineage.after(f"{_words(self._window, self._by, aggregates)}{late_words(self._late)}"),
            time=windowed.WINDOW,
            delay_ms=properties.delay_ms,
            keys=(windowed.WINDOW, *self._by),
            mode="update" if is_updated else "append",
            side=side,
            is_result=True,
            lateness_ms=max(lateness_ms, properties.lateness_ms),
        )
        return self._stream._checked(build, made)

    def count(self) -> Stream:
        """Count the rows of each window, as `count`."""
        return self.aggregate(count="count(*)")


def _timed(rows: "DataFrame", properties: StreamProperties, query: QueryContext) -> "DataFrame":
    """Put the mark of the event time back where a step has lost it."""
    time = column_of(rows, properties.time)
    if time is None or is_timed(rows, time):
        return rows
    marked = timed(sql.col(time), time, properties.delay_ms + query.lateness_ms)
    return rows.select(*(marked if name == time else sql.col(f"`{name}`") for name in rows.columns))


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _within(within: Span | tuple[Span, Span]) -> str:
    return f"{within[0]} before and {within[1]} after" if isinstance(within, tuple) else str(within)


def _words(window: Window, by: Sequence[str], aggregates: Iterable[str]) -> str:
    keys = f" by {', '.join(by)}" if by else ""
    return f"{words_of(window)}{keys}: {', '.join(aggregates)}"
