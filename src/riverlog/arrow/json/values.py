"""Values that are JSON as typed columns: a struct per row, null where the value is null or not what the schema says.

pyarrow parses many values at once, two million a second; before, each is found to be exactly one object (`objects`), so
that no row gets what belongs to another. Where some of them do not fit the schema, halves are tried again until
the bad ones stand alone. What happens to those is the caller's choice.
"""

from collections.abc import Mapping
from datetime import UTC, tzinfo
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.json as arrow_json
from numpy.typing import NDArray

from riverlog.arrow.decoding.decoder import is_kernel_worth_loading
from riverlog.arrow.json import objects
from riverlog.arrow.json.floats import unquoted
from riverlog.arrow.json.leaves import converted, parsed_field

NO_OBJECT: Final = "it is not one JSON object"
NOTHING: Final = "it is null"
SEARCH_ROWS_MIN: Final = 10_000
"""Fewer values are looked through sooner than numba is loaded."""

Fields = Mapping[str, Any]
"""Names with types: Arrow's own or what they are called, as in `{"order": "int64", "amount": "double"}`."""


class Typed(NamedTuple):
    """Typed values, one for each row, and what is wrong with those that are bad, by their row."""

    values: pa.StructArray
    bad: Mapping[int, str]


class ValueSchema(NamedTuple):
    """The schema that values should have."""

    schema: pa.Schema
    zone: tzinfo | None
    """Of times that name none, where it is known."""

    @property
    def parsed(self) -> pa.Schema:
        """Return the schema for the parser."""
        return pa.schema([parsed_field(field) for field in self.schema])


def json_schema(fields: "pa.Schema | Fields") -> pa.Schema:
    """Understand a schema; ValueError says which types there are."""
    if isinstance(fields, pa.Schema):
        return fields
    return pa.schema([pa.field(name, _type(kind)) for name, kind in fields.items()])


def typed(values: pa.BinaryArray, schema: pa.Schema, zone: tzinfo | None = UTC) -> Typed:
    """Parse every value; a field that is missing is null, and one that the schema does not name is left out.

    Where a field must not be null, values without it are bad. Times without a zone are of `zone`, and bad where that is
    not known.
    """
    is_object, is_null = _find_objects(values), np.asarray(values.is_null())
    bad = {int(row): NO_OBJECT for row in np.flatnonzero(~is_object & ~is_null)}
    if any(not field.nullable for field in schema):
        bad |= {int(row): NOTHING for row in np.flatnonzero(is_null)}
    rows = np.flatnonzero(is_object)
    parsed = _parsed(
        values if len(rows) == len(values) else values.take(pa.array(rows)), rows, ValueSchema(schema, zone), bad
    )
    structs = pa.concat_arrays([pa.array([], pa.struct(list(schema))), *parsed])
    if len(structs) == len(values):
        return Typed(structs, {})
    is_object[list(bad)] = False
    places = pa.array(np.cumsum(is_object) - 1, mask=~is_object)
    return Typed(structs.take(places), dict(sorted(bad.items())))


def _type(kind: Any) -> pa.DataType:
    if isinstance(kind, pa.DataType):
        return kind
    try:
        return pa.type_for_alias(kind)
    except ValueError:
        raise ValueError(
            f"there is no type {kind!r}; there are int64, double, string, bool and Arrow's others"
        ) from None


def _find_objects(values: pa.BinaryArray) -> NDArray[np.bool_]:
    """Return which values are exactly one object."""
    assert values.type == pa.binary(), values.type
    is_object = np.zeros(len(values), np.bool_)
    _, ends, content = values.buffers()
    if len(values) > 0 and content is not None:
        find = _compiled_search() if is_kernel_worth_loading(len(values), SEARCH_ROWS_MIN) else objects.find_objects
        places = np.frombuffer(ends, np.int32)[values.offset : values.offset + len(values) + 1]
        find(np.frombuffer(content, np.uint8), places, is_object)
    return is_object


@cache
def _compiled_search() -> Any:
    from riverlog.arrow.decoding.kernel import compiled

    return compiled(objects.find_objects)


def _parsed(
    values: pa.BinaryArray, rows: NDArray[np.int64], expected: ValueSchema, bad: dict[int, str]
) -> list[pa.StructArray]:
    """Parse objects, in halves where all together do not fit the schema; note those that do not even alone."""
    if len(values) == 0:
        return []
    try:
        return [_parsed_together(values, expected)]
    except pa.ArrowInvalid as problem:
        if len(values) == 1:
            return _parsed_alone(values[0].as_py(), int(rows[0]), problem, expected, bad)
    half = len(values) // 2
    return _parsed(values[:half], rows[:half], expected, bad) + _parsed(values[half:], rows[half:], expected, bad)


def _parsed_alone(
    value: bytes, row: int, problem: pa.ArrowInvalid, expected: ValueSchema, bad: dict[int, str]
) -> list[pa.StructArray]:
    """Try a value that was not read once more, with other words for its numbers; note it where that does not help."""
    again = unquoted(value, expected.schema)
    if again is not None:
        try:
            return [_parsed_together(pa.array([again], pa.binary()), expected)]
        except pa.ArrowInvalid as other:
            problem = other
    bad[row] = _why(problem, expected.schema)
    return []


def _why(problem: pa.ArrowInvalid, schema: pa.Schema) -> str:
    """Return what is wrong with a value; the parser does not name the field that it misses."""
    if "required field" not in str(problem):
        return str(problem)
    names = [field.name for field in schema if not field.nullable]
    return f"a field is missing or null that must not be: {' or '.join(names)}"


def _parsed_together(values: pa.BinaryArray, expected: ValueSchema) -> pa.StructArray:
    """Parse objects where they lie: they need nothing between them."""
    _, ends, content = values.buffers()
    begin, end = np.frombuffer(ends, np.int32)[[values.offset, values.offset + len(values)]].tolist()
    table = arrow_json.read_json(
        pa.BufferReader(content.slice(begin, end - begin)),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=end - begin + 1),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=expected.parsed, newlines_in_values=True, unexpected_field_behavior="ignore"
        ),
    )
    table.validate(full=True)  # the parser accepts bytes that are no text
    assert table.num_rows == len(values), "an object is a row"
    columns = [
        converted(column.combine_chunks(), field.type, expected.zone)
        for column, field in zip(table.columns, expected.schema, strict=True)
    ]
    return pa.StructArray.from_arrays(columns, fields=list(expected.schema))
