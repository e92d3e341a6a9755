"""Columns by their names, as Spark finds them: in any case, unless the session is case-sensitive."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SETTING = "spark.sql.caseSensitive"


def column_of(rows: "DataFrame", name: str | None) -> str | None:
    """Find what a column is called in a DataFrame; None where it is not there, or no name is given."""
    if name is None:
        return None
    return found(name, rows.columns, tells_cases_apart=rows.sparkSession.conf.get(_SETTING, "false") == "true")


def found(name: str, columns: Sequence[str], *, tells_cases_apart: bool) -> str | None:
    """Find a name among others; None where there is none, or several differ from it in their case alone."""
    if name in columns:
        return name
    alike = [] if tells_cases_apart else [each for each in columns if each.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None
