"""Names and forms of rows on their way through a query: event times that Spark trusts, and late rows beside results.

Spark finds late rows by a mark in the metadata of a column. An expression over that column loses the mark, and with it
the window or join its watermark; `timed` puts it back.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

DELAY_MARK: Final = "spark.watermarkDelayMs"
"""Spark's name for the mark of an event time: by how much its watermark is behind."""

LATE: Final = "_riverlog_late"
"""In a stream with a side output: null in a result, and the records for the side output in every other row."""

_TIMES: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"


def timed(column: "Column", name: str, delay_ms: int) -> "Column":
    """Return a column as an event time."""
    return column.alias(name, metadata={DELAY_MARK: delay_ms})


def untimed(column: "Column", name: str) -> "Column":
    """Return a column as a time among others."""
    return column.alias(name, metadata={})


def json_of(columns: "Iterable[str | Column]") -> "Column":
    """Write columns as a JSON object; times in UTC with all their digits, so that they can be read back."""
    return sql.to_json(sql.struct(*columns), {"timestampFormat": _TIMES, "timeZone": "UTC"})


def is_timed(frame: "DataFrame", name: str) -> bool:
    """Return whether Spark knows a column as an event time."""
    return name in frame.columns and DELAY_MARK in frame.schema[name].metadata


def carries_late_rows(frame: "DataFrame") -> bool:
    return LATE in frame.columns
