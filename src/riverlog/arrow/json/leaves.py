"""Types that the parser does not read as Spark's `from_json` does: times, dates and bytes, and decimals.

The parser reads strings and wider decimals instead, and what it has read is converted here, also inside of structs and
lists.
"""

from binascii import Error, a2b_base64
from datetime import tzinfo
from typing import Any, Final

import pyarrow as pa

from riverlog.arrow.json.times import dates, times

_DIGITS_MAX: Final = 76
"""Of the widest decimals. In narrow ones, numbers that are too large by many digits overflow."""
NOT_BASE64: Final = "bytes are written as base64"


def is_known(kind: pa.DataType) -> bool:
    """Return whether fields of a type can be read from JSON."""
    if pa.types.is_struct(kind) or _is_list(kind):
        return all(is_known(kind.field(index).type) for index in range(kind.num_fields))
    return (
        _is_text(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_null(kind)
    )


def needs_zone(kind: pa.DataType) -> bool:
    """Return whether a type holds times that may be written without a zone and have one."""
    if pa.types.is_struct(kind) or _is_list(kind):
        return any(needs_zone(kind.field(index).type) for index in range(kind.num_fields))
    return bool(pa.types.is_timestamp(kind)) and kind.tz is not None


def parsed_type(kind: pa.DataType) -> pa.DataType:
    """Return the type for the parser."""
    if _is_text(kind):
        return pa.string()
    if pa.types.is_decimal(kind):
        return pa.decimal256(_DIGITS_MAX, kind.scale)
    if pa.types.is_struct(kind):
        return pa.struct([parsed_field(kind.field(index)) for index in range(kind.num_fields)])
    if _is_list(kind):
        return pa.list_(parsed_field(kind.value_field))
    return kind


def parsed_field(field: pa.Field) -> pa.Field:
    """Return the field for the parser."""
    return field.with_type(parsed_type(field.type))


def converted(array: Any, kind: pa.DataType, zone: tzinfo | None) -> Any:
    """Convert what was parsed to what it should be; ArrowInvalid where it is not. `zone` is for times without one."""
    if array.type == kind:
        return array
    if pa.types.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        parts = array.flatten()  # with nulls where the struct is null, whatever stands there
        children = [converted(part, field.type, zone) for part, field in zip(parts, fields, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    if _is_list(kind):
        inner = converted(array.values, kind.value_type, zone)
        return pa.ListArray.from_arrays(array.offsets, inner, type=kind, mask=array.is_null())
    if pa.types.is_decimal(kind):
        return array.cast(kind)
    if pa.types.is_timestamp(kind):
        return times(array, kind, zone)
    if pa.types.is_date(kind):
        return dates(array, kind)
    return pa.array([None if text is None else _bytes(text) for text in array.to_pylist()], kind)


def _bytes(text: str) -> bytes:
    try:
        return a2b_base64(text.encode(), strict_mode=True)
    except Error:
        raise pa.ArrowInvalid(NOT_BASE64) from None


def _is_text(kind: pa.DataType) -> bool:
    """Return whether JSON holds a type as text of a certain form."""
    is_time: bool = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    return is_time or kind in (pa.binary(), pa.large_binary())


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind))
