"""Columns in the few layouts that encoders read, made of any layout that Arrow has for the same cells.

    content   binary, with ends of 32 bits
    headers   list<struct<key: string, value: binary>>, with ends of 32 bits; names are UTF-8
    numbers   int32; times int64, in milliseconds

What already has its layout is returned as it is; the usual others (strings, 64 bits) are narrowed, and rare ones
(views, list views, run ends) go cell by cell. A column that needs more than 32 bits is TooLarge: half of its rows may
not.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from riverlog.arrow.columns import HEADERS_TYPE, TIMESTAMP_MS_MAX
from riverlog.client.errors import KafkaError
from riverlog.model.errors import ErrorCode

ENDS_MAX: Final = 2**31 - 1
"""The last end that has 32 bits."""
_UNITS_PER_MS: Final = {"us": 1_000, "ns": 1_000_000}
_MS_PER_UNIT: Final = {"s": 1_000, "ms": 1}
_TEXT: Final = (pa.string(), pa.large_string(), pa.string_view())
_BYTES: Final = (pa.binary(), pa.large_binary(), pa.binary_view())
_FIELDS: Final = ["key", "value"]
_ASCII: Final = 128
"""Bytes."""


class TooLarge(Exception):
    """The rows need ends of more than 32 bits."""


def contents(array: Any, name: str) -> Any:
    """Return a column of text or bytes as bytes, or None where all of its cells are null by their type."""
    kind = array.type
    if pa.types.is_null(kind):
        return None
    if kind == pa.binary():
        return array
    if not _is_content(kind):
        raise _unfit(name, kind, "string or binary")
    if kind == pa.string():
        return array.view(pa.binary())
    if kind in (pa.large_string(), pa.large_binary()):
        return _narrowed(array)
    return _rebuilt(lambda: pa.array(map(_bytes, array.to_pylist()), pa.binary()))


def names_of(array: Any, name: str) -> Any:
    """Return a column of text as strings that are UTF-8, or None where all of its cells are null by their type."""
    if pa.types.is_null(array.type):
        return None
    found = contents(array, name)
    if array.type == pa.string() and _is_ascii(found):
        return array
    try:
        return found.cast(pa.string())
    except pa.ArrowInvalid:
        raise KafkaError(ErrorCode.INVALID_RECORD, f'in the column "{name}" there is text that is not UTF-8') from None


def _is_ascii(array: Any) -> bool:
    """Return whether bytes are ASCII alone, as names mostly are: the largest is found sooner than all letters."""
    _, ends, content = array.buffers()
    if len(array) == 0 or content is None:
        return True
    begin, end = np.frombuffer(ends, np.int32)[[array.offset, array.offset + len(array)]].tolist()
    return int(np.frombuffer(content, np.uint8)[begin:end].max(initial=0)) < _ASCII


def header_lists(array: Any) -> Any:
    """Return the headers of rows, or None where all of them are null by their type."""
    kind = array.type
    if pa.types.is_null(kind):
        return None
    pairs = _pairs_type(kind)
    if pairs is None or [field.name for field in pairs] != _FIELDS or not _is_text_and_content(pairs):
        raise _unfit("headers", kind, "array<struct<key: string, value: binary>>")
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        plain = pa.list_(pa.struct([("key", pairs.field("key").type), ("value", pairs.field("value").type)]))
        cells = [None if cell is None else [_pair(each) for each in cell] for cell in array.to_pylist()]
        array = _rebuilt(lambda: pa.array(cells, plain))
    if pa.types.is_list(kind) and (pairs.field("key").type, pairs.field("value").type) == (pa.string(), pa.binary()):
        names_of(array.flatten().field("key"), "headers")
        return array
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
    if ends[-1] > ENDS_MAX:
        raise TooLarge
    names, values = array.flatten().flatten()
    keys, bodies = names_of(names, "headers"), contents(values, "headers")
    children = [
        pa.nulls(len(names), field.type) if child is None else child
        for child, field in zip((keys, bodies), HEADERS_TYPE.value_type, strict=True)
    ]
    flat = pa.StructArray.from_arrays(children, fields=list(HEADERS_TYPE.value_type))
    nulls = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), flat, type=HEADERS_TYPE, mask=nulls)


def numbers(array: Any) -> Any:
    """Return a column of partitions, or None where all of its cells are null by their type."""
    if pa.types.is_null(array.type):
        return None
    if array.type != pa.int32():
        raise _unfit("partition", array.type, "int")
    return array


def times_ms(array: Any, now_ms: int) -> NDArray[np.int64]:
    """Return times in whole milliseconds, rounded down; rows without a time have this one."""
    if pa.types.is_null(array.type):
        return np.full(len(array), now_ms, np.int64)
    if not pa.types.is_timestamp(array.type):
        raise _unfit("timestamp", array.type, "timestamp")
    found: NDArray[np.int64] = pc.fill_null(array.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    unit = array.type.unit
    if unit in _UNITS_PER_MS:
        found = found // _UNITS_PER_MS[unit]
    else:
        found = np.clip(found, -TIMESTAMP_MS_MAX // _MS_PER_UNIT[unit], TIMESTAMP_MS_MAX // _MS_PER_UNIT[unit])
        found = found * _MS_PER_UNIT[unit]
    return np.where(np.asarray(array.is_null()), np.int64(now_ms), found) if array.null_count else found


def _narrowed(array: Any) -> Any:
    """Return a column with ends of 64 bits as bytes with ends of 32, over the same content.

    Arrow's cast looks at the last end alone, and refuses small slices of what is large.
    """
    if len(array) == 0:
        return pa.array([], pa.binary())
    _, ends, content = array.buffers()
    wide = np.frombuffer(ends, np.int64, len(array) + 1, 8 * array.offset)
    begin, size = int(wide[0]), int(wide[-1] - wide[0])
    if size > ENDS_MAX:
        raise TooLarge
    valid = pa.array(np.asarray(array.is_valid())).buffers()[1] if array.null_count else None
    narrow = pa.py_buffer((wide - begin).astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(array), [valid, narrow, content and content.slice(begin, size)])


def _is_text(kind: pa.DataType) -> bool:
    return _cell_type(kind) in _TEXT


def _is_content(kind: pa.DataType) -> bool:
    return _cell_type(kind) in (*_TEXT, *_BYTES) or pa.types.is_fixed_size_binary(_cell_type(kind))


def _cell_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the cells of a column that keeps equal ones once."""
    return kind.value_type if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind) else kind


def _pairs_type(kind: pa.DataType) -> "pa.StructType | None":
    """Return the type of one header; None where the column has no lists of structs."""
    if pa.types.is_map(kind):
        return pa.struct([("key", kind.key_type), ("value", kind.item_type)])
    is_list = (
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
        or pa.types.is_fixed_size_list(kind)
    )
    return kind.value_type if is_list and pa.types.is_struct(kind.value_type) else None


def _is_text_and_content(pairs: pa.StructType) -> bool:
    key, value = (field.type for field in pairs)
    return (_is_text(key) or pa.types.is_null(key)) and (_is_content(value) or pa.types.is_null(value))


def _pair(cell: Any) -> Any:
    """Return a header as a struct; a map's is a pair."""
    return dict(zip(_FIELDS, cell, strict=True)) if isinstance(cell, tuple) else cell


def _bytes(cell: str | bytes | None) -> bytes | None:
    return cell.encode() if isinstance(cell, str) else cell


def _rebuilt(build: Callable[[], Any]) -> Any:
    """Build a column anew; TooLarge where its ends need more than 32 bits."""
    try:
        found = build()
    except (pa.ArrowInvalid, pa.ArrowCapacityError) as problem:
        raise TooLarge from problem
    if isinstance(found, pa.ChunkedArray):  # how Arrow avoids longer ends
        raise TooLarge
    return found


def _unfit(name: str, kind: pa.DataType, expected: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, f'the column "{name}" is {kind}, and must be {expected}')
