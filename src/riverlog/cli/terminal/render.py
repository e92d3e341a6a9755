"""What commands print: tables for people, JSON lines for programs, YAML for those who ask.

Every command names its facts as plain rows (dictionaries of JSON values); only the text form knows about looks.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum

from riverlog.cli.terminal.tables import draw_table
from riverlog.model.ids import NO_TIMESTAMP

Row = Mapping[str, object]

ProgressCallback = Callable[[int, int], None]
"""Called with how many records and bytes have been handled so far."""


class OutputFormat(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def emit(rows: Sequence[Row], output: OutputFormat | None, text: Callable[[], None]) -> None:
    """Print rows in the chosen format; without a choice, text on a terminal and JSON lines elsewhere."""
    match chosen(output):
        case OutputFormat.TABLE:
            text()
        case OutputFormat.JSON:
            for row in rows:
                print(as_json(row))
        case OutputFormat.YAML:
            print("\n".join(as_yaml(list(rows))))


def chosen(output: OutputFormat | None) -> OutputFormat:
    """Return the format that holds: without a choice, text on a terminal and JSON lines elsewhere."""
    return output or (OutputFormat.TABLE if sys.stdout.isatty() else OutputFormat.JSON)


def emit_table(
    rows: Sequence[Row], output: OutputFormat | None, columns: Sequence[str], nothing: str | None = None
) -> None:
    """Print rows in the chosen format; the text is a table of as many of their values as there are columns.

    Where there are no rows, people read the sentence `nothing` instead of an empty table.
    """

    def text() -> None:
        if rows or nothing is None:
            draw_table(columns, [list(row.values())[: len(columns)] for row in rows])
        else:
            print(nothing)

    emit(rows, output, text)


def as_json(row: Row) -> str:
    """Render one row as one line."""
    return json.dumps(row, ensure_ascii=False)


def as_yaml(value: object, depth: int = 0) -> Iterator[str]:
    """Render plain values as lines of YAML. Text is quoted as in JSON, which YAML reads the same way."""
    pad = "  " * depth
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            if _nested(item):
                yield f"{pad}{_scalar(name)}:"
                yield from as_yaml(item, depth + 1)
            else:
                yield f"{pad}{_scalar(name)}: {_scalar(item)}"
    elif isinstance(value, list | tuple) and value:
        for item in value:
            if _nested(item):
                first, *others = as_yaml(item, depth + 1)
                yield f"{pad}- {first.lstrip()}"
                yield from others
            else:
                yield f"{pad}- {_scalar(item)}"
    else:
        yield f"{pad}{_scalar(value)}"


def size_text(count: int) -> str:
    """Return a number of bytes as people read it."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError("the last unit takes every size")


def time_text(timestamp_ms: int | None, precision: str = "seconds") -> str | None:
    """Return a time as ISO 8601; None where there is none, and the number where no calendar goes that far."""
    if timestamp_ms is None or timestamp_ms == NO_TIMESTAMP:
        return None
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec=precision).replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):  # nonsense, but somebody's nonsense
        return str(timestamp_ms)


def plural(count: int, noun: str, nouns: str = "") -> str:
    """Count a noun: `1 record`, `2 records`; `nouns` where the plural is no mere s."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def _nested(value: object) -> bool:
    return isinstance(value, Mapping | list | tuple) and len(value) > 0


_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/")
_WORDS_WITH_MEANING = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n", "~", "nan", "inf"})


def _scalar(value: object) -> str:
    """Leave words bare that YAML can only read as text; quote all else as JSON does."""
    bare = isinstance(value, str) and value[:1].isalpha() and _PLAIN.issuperset(value)
    if bare and str(value).lower() not in _WORDS_WITH_MEANING:
        return str(value)
    return json.dumps(value, ensure_ascii=False)
