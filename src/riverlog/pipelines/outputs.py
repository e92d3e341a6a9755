"""Where results go: topics, the console, Parquet files, or whatever a DataStreamWriter can.

A topic gets records: the value is JSON, the key is the window and the keys of the results, so that an updated result
has the key of the one that it replaces. Rows that have the columns of a record (`key`, `value`, …) are written as they
are. Late rows of a side output become records of their topic in the same query, and so in the same transaction.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as sql

from riverlog.pipelines.mistakes import column
from riverlog.pipelines.rows import LATE, carries_late_rows, json_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RECORD_COLUMNS: Final = frozenset(
    {"key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"}
)
"""The columns of a record as the source gives them."""


@dataclass(frozen=True)
class TopicTarget:
    """A topic of the cluster."""

    topic: str
    key: "str | Column | None" = None
    value: "str | Column | None" = None


@dataclass(frozen=True)
class ConsoleTarget:
    """The terminal, for a look at what comes out."""

    rows_max: int = 20


@dataclass(frozen=True)
class ParquetTarget:
    """Files in a folder; partitioned by columns, if they are named."""

    path: str
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class CustomTarget:
    """Anything of Spark: a function that is given the DataStreamWriter and gives it back."""

    configure: Callable[[Any], Any] = field(repr=False)


Target = TopicTarget | ConsoleTarget | ParquetTarget | CustomTarget


def records(rows: "DataFrame", target: TopicTarget, *, keys: Sequence[str], side_topic: str | None) -> "DataFrame":
    """Return `topic`, `key` and `value` (and `headers`, where rows are records already)."""
    columns = [name for name in rows.columns if name != LATE]
    topic = sql.lit(target.topic).alias("topic")
    if target.key is None and target.value is None and is_record(columns):
        return rows.select(topic, *(name for name in ("key", "value", "headers") if name in columns))
    no_key = sql.lit(None).cast("string")
    key = column(target.key) if target.key is not None else json_of(keys) if keys else no_key
    value = column(target.value) if target.value is not None else json_of(columns)
    if not carries_late_rows(rows):
        return rows.select(topic, key.alias("key"), value.alias("value"))
    exploded = rows.select(*(sql.col(f"`{name}`") for name in columns), sql.explode_outer(LATE).alias(LATE))
    late = sql.col(LATE)
    chosen = {
        "topic": (sql.lit(side_topic), sql.lit(target.topic)),
        "key": (late["key"], key.cast("string")),
        "value": (late["value"], value.cast("string")),
    }
    return exploded.select(
        *(sql.when(late.isNotNull(), aside).otherwise(result).alias(name) for name, (aside, result) in chosen.items())
    )


def updates_to(options: Mapping[str, str]) -> "Callable[[DataFrame, int], None]":
    """Return a writer of batches with updates: in the query's transaction, as the sink would if Spark let it."""

    def write(rows: "DataFrame", _batch: int) -> None:
        rows.write.format("riverlog").options(**options, ofStream="true").mode("append").save()

    return write


def is_record(columns: Sequence[str]) -> bool:
    """Return whether rows have the columns of a record, and no others."""
    return "value" in columns and set(columns) <= RECORD_COLUMNS
