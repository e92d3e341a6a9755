"""Columns between Spark and Arrow: which there are, in Spark's words, and what a task decodes for those it is to give.

A column of a record has its name and type, and no other. With values that are JSON, names that `value.schema` has, and
all that are no column of a record, are fields in them.
"""

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from riverlog.arrow.columns import TYPES, USUAL, schema_of
from riverlog.spark.options import BadOption
from riverlog.spark.source.options import BadValues, JsonValues, SourceOptions

if TYPE_CHECKING:
    import pyarrow as pa

DDL: Final = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key: string, value: binary>>",
}
"""The columns of a record with Spark's types."""
NEVER_NULL: Final = ("topic", "partition", "offset", "timestampType")
"""Columns that every record has. Spark is told so: then it does not ask for each cell, an eighth of what it does."""


class Columns(NamedTuple):
    """What a task gives Spark, and what it decodes for that."""

    given: "pa.Schema"
    decoded: "pa.Schema"
    fields: "pa.Schema | None"
    """Those in values that are JSON."""

    @property
    def of_records(self) -> list[str]:
        """Name those that are given and are columns of the record itself."""
        return [name for name in self.given.names if self.fields is None or name not in self.fields.names]


def default_schema(options: SourceOptions) -> str:
    """Write the schema where the program gives none. It is for Spark to read, the fields of values as they are."""
    names = record_columns(options)
    for name in names:
        if name not in DDL:
            raise BadOption("columns", ", ".join(names), f"there is no column {name!r}; there are {', '.join(DDL)}")
    written = [f"`{name}` {DDL[name]}{' NOT NULL' if name in NEVER_NULL else ''}" for name in names]
    if options.json is not None:
        _check_fields(options.json, names)
        written.append(options.json.schema)
    if not written:
        raise BadOption("columns", "", "at least one column is read")
    return ", ".join(written)


def record_columns(options: SourceOptions) -> tuple[str, ...]:
    """Name the columns of the record itself: chosen ones, or the usual ones without a value that becomes columns."""
    if options.columns is not None:
        return options.columns
    usual = USUAL if options.json is None else tuple(name for name in USUAL if name != "value")
    return (*usual, "headers") if options.has_headers else usual


def columns(schema: StructType, json: JsonValues | None) -> Columns:
    """Find out what is to be decoded for a schema; it may be the program's own, with fewer columns."""
    given = to_arrow_schema(schema, timezone="UTC")
    if len({name.lower() for name in given.names}) < len(given.names):
        raise BadOption("schema", ", ".join(given.names), "a name comes twice; choose other columns")
    in_values = set(field_names(json.schema)) | {name for name in given.names if name not in TYPES} if json else set()
    for field in given:
        if field.name in in_values:
            continue
        if field.name not in TYPES:
            raise BadOption("schema", field.name, f"there is no such column; there are {', '.join(DDL)}")
        if field.type != TYPES[field.name]:
            raise BadOption(
                "schema", f"{field.name} {schema[field.name].dataType.simpleString()}", _type_of(field.name)
            )
        if not field.nullable and field.name not in NEVER_NULL:
            reason = f"a record may have no {field.name}; leave out NOT NULL"
            raise BadOption("schema", f"{field.name} {DDL[field.name]} NOT NULL", reason)
    names = [name for name in given.names if name not in in_values]
    fields = [field for field in given if field.name in in_values]
    if json is not None:
        names += ["value", "offset"]  # what is bad is told by its offset
        if json.bad is BadValues.DEAD_LETTER:
            names += ["key", "headers"]
    decoded = schema_of(dict.fromkeys(names))
    return Columns(given, decoded, _json_fields(fields, json) if json is not None else None)


def _type_of(name: str) -> str:
    return f"the column is {DDL[name]}; read it as that and cast it"


def _json_fields(fields: "list[pa.Field]", json: JsonValues) -> "pa.Schema":
    """Return a schema of the fields, whose types can be read from JSON."""
    import pyarrow as pa

    from riverlog.arrow.json.leaves import is_known

    if not fields:
        raise BadOption("value.schema", None, 'name fields of the values, as in "order long, amount double"')
    for field in fields:
        if not field.nullable and json.bad is BadValues.NULL:
            reason = "with badValues=null it is null where a value is bad; leave out NOT NULL, or set badValues=fail"
            raise BadOption("value.schema", f"{field.name} {field.type} NOT NULL", reason)
        if not is_known(field.type):
            reason = "fields of this type cannot be read from JSON; read it as a string and cast it"
            raise BadOption("value.schema", f"{field.name} {field.type}", reason)
        if _holds_required(field.type):
            reason = "inside of a field nothing can be NOT NULL; leave that out there"
            raise BadOption("value.schema", f"{field.name} {field.type}", reason)
    return pa.schema(fields)


def _holds_required(kind: "pa.DataType") -> bool:
    """Return whether something inside of a struct or a list must not be null."""
    inner = [kind.field(index) for index in range(kind.num_fields)]
    return any(not field.nullable or _holds_required(field.type) for field in inner)


def _check_fields(json: JsonValues, names: tuple[str, ...]) -> None:
    fields = field_names(json.schema)
    if not fields:
        raise BadOption("value.schema", None, 'name fields of the values, as in "order long, amount double"')
    taken = {name.lower() for name in names}
    for field in fields:
        if field.lower() in taken:
            others = ", ".join(name for name in names if name.lower() != field.lower())
            reason = (
                f"records have a column {field!r}, too; leave that out with columns={others!r}, or rename the field"
            )
            raise BadOption("value.schema", json.schema, reason)


def field_names(ddl: str) -> list[str]:
    """Return the names at the top of a schema as Spark writes it; Spark itself reads the rest."""
    names: list[str] = []
    field: list[str] = []
    depth = 0
    for found in [*_TOKEN.finditer(ddl), None]:
        token = "," if found is None else found[0]
        depth += (token in "<(") - (token in ">)")
        if token == "," and depth == 0:
            names += field[:1]
            field = []
        elif found is not None and found.lastgroup == "quoted":
            field.append(token[1:-1].replace("``", "`"))
        elif found is not None and found.lastgroup == "word":
            field.append(token)
    return names


_TOKEN: Final = re.compile(
    r"(?P<comment>/\*.*?\*/|--[^\n]*)|(?P<quoted>`(?:[^`]|``)*`)|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<word>[^\s,:<>()`'\"]+)|(?P<mark>[,<>()])",
    re.DOTALL,
)
"""What a schema is made of; spaces and the colons behind names are not."""
