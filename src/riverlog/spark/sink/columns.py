"""The columns of a DataFrame that becomes records, as Spark's Kafka sink has them; refused before anything is written.

Their names may be written in any case, as everywhere in Spark. Columns with other names are left out. `timestamp` is
ours: Spark's sink gives each record the time of its sending.
"""

from typing import TYPE_CHECKING, Final

from pyspark.sql import types

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

_CONTENT: Final = (types.StringType, types.BinaryType, types.NullType)


class BadColumn(ValueError):
    """A column is missing, or cannot be what it is; the message says what to do."""


def record_columns(schema: types.StructType, topic: str | None) -> dict[str, str]:
    """Return what the columns of records are called in a DataFrame; refuse one that records cannot be made of.

    `topic` is the option, which wins over the column.
    """
    names = _names(schema)
    found = {name: schema[given].dataType for name, given in names.items()}
    if "value" not in found:
        raise BadColumn(
            f'there is no column "value" among {", ".join(schema.names) or "none"}; name the one that records are made '
            'of: .selectExpr("CAST(... AS STRING) AS value")'
        )
    if topic is None and "topic" not in found:
        raise BadColumn('nothing says where records go: set the option "topic", or add a column "topic" of type string')
    for name, (expected, fits) in _EXPECTED.items():
        if name in found and not fits(found[name]) and not (name == "topic" and topic is not None):
            raise BadColumn(f'the column "{name}" has the type {found[name].simpleString()}, and must be {expected}')
    return names


def renamed(frame: "pa.RecordBatch", names: dict[str, str]) -> "pa.RecordBatch":
    """Return the columns of records under their own names."""
    if all(name == given for name, given in names.items()):
        return frame
    return frame.select(list(names.values())).rename_columns(list(names))


def _names(schema: types.StructType) -> dict[str, str]:
    """Find the columns of records: each by its name, or else by one that differs in its case alone."""
    names: dict[str, str] = {}
    for name in _EXPECTED:
        alike = [given for given in schema.names if given.lower() == name]
        if name in alike or len(alike) == 1:
            names[name] = name if name in alike else alike[0]
        elif alike:
            raise BadColumn(f'the columns {" and ".join(alike)} differ in their case alone; call one of them "{name}"')
    return names


def _is_content(kind: types.DataType) -> bool:
    return isinstance(kind, _CONTENT)


def _is_headers(kind: types.DataType) -> bool:
    if not isinstance(kind, types.ArrayType) or not isinstance(kind.elementType, types.StructType):
        return False
    fields = [(field.name, type(field.dataType)) for field in kind.elementType.fields]
    return fields == [("key", types.StringType), ("value", types.BinaryType)]


_EXPECTED: Final[dict[str, tuple[str, "Callable[[types.DataType], bool]"]]] = {
    "value": ("string or binary", _is_content),
    "key": ("string or binary", _is_content),
    "topic": ("string", lambda kind: isinstance(kind, types.StringType)),
    "partition": ("int", lambda kind: isinstance(kind, types.IntegerType)),
    "headers": ("array<struct<key:string,value:binary>>", _is_headers),
    "timestamp": (
        "timestamp, which one without a zone becomes by a cast",
        lambda kind: isinstance(kind, types.TimestampType),
    ),
}
