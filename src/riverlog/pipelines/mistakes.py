"""Mistakes in the steps of a stream, told in plain words where the step is written.

Spark checks each step when it is added. What it says of a wrong one names columns that only a pipeline knows of, and
its plan; PySpark writes it to standard error besides, as JSON with pages of Java. `WrongStep` has the sentence alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from riverlog.spark.error_words import mistake

if TYPE_CHECKING:
    from pyspark.sql import Column

_LOGGERS: Final = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""PySpark's, which write down what is raised anyway."""


class WrongStep(ValueError):
    """A step of a stream cannot be done: a column or function that is not there, or SQL that is none."""


@contextmanager
def told_plainly() -> Iterator[None]:
    """Raise WrongStep for what Spark says about a step."""
    from pyspark.errors import AnalysisException

    _silence()
    try:
        yield
    except AnalysisException as problem:  # what cannot be parsed is one, too
        said = mistake(str(problem))
    else:
        return
    raise WrongStep(said)


def column(given: "str | Column") -> "Column":
    """Return SQL, or a Column, as a Column; WrongStep where it is no SQL."""
    from pyspark.sql import functions as sql

    if not isinstance(given, str):
        return given
    with told_plainly():
        return sql.expr(given)


def _silence() -> None:
    from pyspark.logger import PySparkLogger

    for name in _LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
