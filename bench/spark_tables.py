"""A topic as a table of Spark: read as a whole, and written as a whole."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from bench.clients import fresh_topic
from bench.spark import (
    CONNECTOR,
    MILLION,
    PARTITIONS,
    RIVERLOG,
    TUNED,
    Meter,
    Way,
    expect_rows,
    expect_written,
    in_turn,
    orders,
    ways_at,
    written_columns,
)
from bench.trial import Trial, Values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

READ_ROWS_PER_SECOND: Final = {100: 1_500_000, 1_000: 300_000}
WRITTEN_ROWS_PER_SECOND: Final = 500_000
"""About what the connector does, so that it takes as long as a run should."""
AT_LEAST_ONCE: Final = Way("at least once", "riverlog", {"delivery": "at-least-once"})
EXACTLY_ONCE: Final = Way("exactly once", "riverlog")

Use = Callable[["DataFrame"], int | None]
"""What is done with the rows; it tells how many there were where it knows."""


def aggregate(rows: "DataFrame") -> int:
    """Look at every column of every row, by what is cheapest to compute: it is the reading that is measured.

    The largest of texts Spark would sort for; to find the length of a text it would count characters, byte by byte.
    """
    (found,) = rows.selectExpr(
        "count(*) AS rows",
        "sum(length(key))",
        "sum(length(value))",
        "sum(octet_length(topic))",
        "sum(partition)",
        "sum(offset)",
        "max(timestamp)",
        "sum(timestampType)",
    ).collect()
    return int(found.rows)


def to_noop(rows: "DataFrame") -> None:
    """Bring every row to a sink that forgets it."""
    rows.write.format("noop").mode("overwrite").save()


def read(trial: Trial, *, value_bytes: int, use: Use, tuned: bool = False) -> Values:
    """Read a topic of four partitions as a whole, by riverlog's format and by Spark's own connector."""
    ways = ways_at(trial, RIVERLOG, CONNECTOR, *([TUNED] if tuned else []))
    rows = trial.seconds * READ_ROWS_PER_SECOND[value_bytes]
    values: dict[str, float] = {}
    with orders(trial, rows=rows, value_bytes=value_bytes) as (topic, count):
        measures = {way.name: partial(_read, trial, way, topic, count, use) for way in ways}
        for name, meter in in_turn(trial, f"{use.__name__} {value_bytes}", measures).items():
            values |= _rates(name, count, meter)
    if RIVERLOG in ways:
        values["gain"] = values[RIVERLOG.name] / values[CONNECTOR.name]
        if tuned:
            values["gain on tuned"] = values[RIVERLOG.name] / values[TUNED.name]
    return values


def _read(trial: Trial, way: Way, topic: str, count: int, use: Use) -> Meter:
    with Meter() as meter:
        seen = use(way.rows(trial, topic))
    expect_rows(count if seen is None else seen, count)
    return meter


def write(trial: Trial) -> Values:
    """Write rows of 100 B to a topic of four partitions: at least once, exactly once, and by Spark's own connector."""
    ways = [AT_LEAST_ONCE, EXACTLY_ONCE, CONNECTOR] if ways_at(trial, RIVERLOG) else [CONNECTOR]
    count = round(trial.seconds * WRITTEN_ROWS_PER_SECOND)
    values: dict[str, float] = {}
    measures = {way.name: partial(_write, trial, way, count) for way in ways}
    for name, meter in in_turn(trial, "write", measures).items():
        values |= _rates(name, count, meter)
    if EXACTLY_ONCE in ways:
        for way in (AT_LEAST_ONCE, EXACTLY_ONCE):
            values[f"gain {way.name}"] = values[way.name] / values[CONNECTOR.name]
        values["share"] = values[EXACTLY_ONCE.name] / values[AT_LEAST_ONCE.name]
    return values


def _write(trial: Trial, way: Way, count: int) -> Meter:
    rows = trial.workshop.spark().range(0, count, 1, PARTITIONS).selectExpr(*written_columns("id"))
    with fresh_topic(trial.node, partitions=PARTITIONS) as topic:
        writer = way.addressed(rows.write, trial, topic=topic).mode("append")
        with Meter() as meter:
            writer.save()
        expect_written(trial, topic, count)
    return meter


def _rates(name: str, count: int, meter: Meter) -> dict[str, float]:
    return {name: count / MILLION / meter.seconds, f"CPU {name}": meter.cpu_seconds / (count / MILLION)}
