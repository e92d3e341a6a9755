"""Records to columns by the kernel: buffers made, filled and handed to Arrow as they are."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from riverlog.arrow.columns import HEADERS_TYPE, MICROSECONDS, TIMESTAMP_MS_MAX, TIMESTAMP_TYPE, Cut
from riverlog.arrow.decoding import kernel
from riverlog.arrow.decoding.kernel import Bytes, Ints, Longs
from riverlog.arrow.decoding.runs import Run
from riverlog.client.errors import CorruptRecords
from riverlog.model.ids import TopicPartition

_SLACK: Final = 4
"""A buffer of which less than one part in so many is unused is kept; a larger rest is not worth its memory."""
_REPEATED_BYTES_MAX: Final = 16 * 1024 * 1024
"""A column of one value over and over that has more is made for its batch alone."""
_UNCOUNTED: Final = -1
"""How many nulls there are is for Arrow to find out."""


class Binary(NamedTuple):
    """A column of bytes as Arrow keeps it; `ends` begins with a 0 that belongs to no row."""

    ends: Ints
    valid: Bytes
    content: Bytes


class Decoded(NamedTuple):
    """What the kernel has filled, and how much of it."""

    offsets: Longs
    timestamps_ms: Longs
    timestamp_types: Ints
    keys: Binary
    values: Binary
    header_starts: Longs
    rows: int
    key_nulls: int
    value_nulls: int
    headers: int
    name_bytes: int
    header_bytes: int


def record_batch(runs: Sequence[Run], partition: TopicPartition, schema: pa.Schema, cut: Cut) -> pa.RecordBatch:
    """Decode a portion to one Arrow batch, which may have no rows."""
    decoded = _decode(runs, partition, schema.names, cut)
    arrays = [_array(name, decoded, partition, runs) for name in schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _decode(runs: Sequence[Run], partition: TopicPartition, names: Sequence[str], cut: Cut) -> Decoded:
    """Allocate for as many rows as there can be, and call the kernel to fill it."""
    size = sum(len(run.content) for run in runs)
    count = sum(run.header.record_count for run in runs)
    offsets, timestamps_ms = np.empty(count, np.int64), np.empty(count, np.int64)
    timestamp_types = np.empty(count, np.int32)
    keys, values = (_binary(count, size) if name in names else _NOTHING for name in ("key", "value"))
    header_starts = np.empty(count if "headers" in names else 0, np.int64)
    flaw, run, *counts = kernel.decode(
        _table(runs),
        *cut,
        "headers" in names,
        offsets,
        timestamps_ms,
        timestamp_types,
        *keys,
        *values,
        header_starts,
    )
    if flaw:
        raise CorruptRecords(partition, runs[run].header.base_offset, kernel.FLAWS[flaw])
    return Decoded(offsets, timestamps_ms, timestamp_types, keys, values, header_starts, *counts)


def _table(runs: Sequence[Run]) -> Longs:
    """List for the kernel where the records lie; whoever holds the runs keeps them there."""
    table = np.empty((len(runs), kernel.RUN_FIELDS), np.int64)
    for row, (header, content) in zip(table, runs, strict=True):
        start: int = np.frombuffer(content, np.uint8).__array_interface__["data"][0]
        stamped = header.timestamp_type
        timestamp_ms = header.max_timestamp if stamped else header.first_timestamp
        row[:] = (
            start,
            start + len(content),
            header.record_count,
            header.base_offset,
            header.last_offset_delta,
            timestamp_ms,
            stamped,
        )
    return table


def _binary(count: int, size: int) -> Binary:
    ends = np.empty(count + 1, np.int32)
    ends[0] = 0
    return Binary(ends, np.zeros((count + 7) // 8, np.uint8), np.empty(size, np.uint8))


def _array(name: str, decoded: Decoded, partition: TopicPartition, runs: Sequence[Run]) -> pa.Array:
    rows = decoded.rows
    match name:
        case "topic":
            return _repeated(partition.topic, pa.string(), rows)
        case "partition":
            return _repeated(partition.partition, pa.int32(), rows)
        case "offset":
            return pa.array(_fitted(decoded.offsets, rows))
        case "timestamp":
            return _times(decoded.timestamps_ms[:rows])
        case "timestampType":
            return pa.array(_fitted(decoded.timestamp_types, rows))
        case "key":
            return _bytes(pa.binary(), decoded.keys, rows, decoded.key_nulls)
        case "value":
            return _bytes(pa.binary(), decoded.values, rows, decoded.value_nulls)
        case _:
            return _header_lists(decoded, partition, runs)


def _repeated(value: str | int, kind: pa.DataType, rows: int) -> pa.Array:
    """Return a value in each row: the front of a column that is kept for the next batches, unless it is too large."""
    room = 1 << rows.bit_length()
    size = len(value) if isinstance(value, str) else 1
    if size * room > _REPEATED_BYTES_MAX:
        return pa.repeat(pa.scalar(value, kind), rows)
    return _column_of(value, kind, room)[:rows]


@lru_cache(maxsize=2)
def _column_of(value: str | int, kind: pa.DataType, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), rows)


def _times(milliseconds: Longs) -> pa.Array:
    """Count microseconds; null where there are more than fit."""
    beyond = None
    if len(milliseconds) and (milliseconds.max() > TIMESTAMP_MS_MAX or milliseconds.min() < -TIMESTAMP_MS_MAX):
        beyond = (milliseconds > TIMESTAMP_MS_MAX) | (milliseconds < -TIMESTAMP_MS_MAX)
        milliseconds = np.where(beyond, 0, milliseconds)
    return pa.array(milliseconds * MICROSECONDS, TIMESTAMP_TYPE, mask=beyond)


def _bytes(kind: pa.DataType, column: Binary, rows: int, nulls: int) -> pa.Array:
    valid = pa.py_buffer(_fitted(column.valid, (rows + 7) // 8)) if nulls else None
    content = pa.py_buffer(_fitted(column.content, column.ends[rows]))
    return pa.Array.from_buffers(kind, rows, [valid, pa.py_buffer(_fitted(column.ends, rows + 1)), content], nulls)


def _fitted(buffer: Any, used: int) -> Any:
    """Return the used part; as a copy, where it would keep much unused memory alive."""
    part = buffer[:used]
    return part.copy() if len(buffer) - used > len(buffer) // _SLACK else part


def _header_lists(decoded: Decoded, partition: TopicPartition, runs: Sequence[Run]) -> pa.Array:
    rows, total = decoded.rows, decoded.headers
    if total == 0:
        return pa.nulls(rows, HEADERS_TYPE)
    lists = _binary(rows, 0)
    names, values = _binary(total, decoded.name_bytes), _binary(total, decoded.header_bytes)
    kernel.decode_headers(decoded.header_starts[:rows], lists.ends, lists.valid, names.ends, names.content, *values)
    keys = _bytes(pa.string(), names, total, 0)
    try:
        keys.validate(full=True)
    except pa.ArrowInvalid:
        reason = "the name of a record's header is not UTF-8"
        raise CorruptRecords(partition, runs[0].header.base_offset, reason) from None
    contents = _bytes(pa.binary(), values, total, _UNCOUNTED)
    pairs = pa.StructArray.from_arrays([keys, contents], fields=list(HEADERS_TYPE.value_type))
    buffers = [pa.py_buffer(lists.valid), pa.py_buffer(lists.ends)]
    return pa.Array.from_buffers(HEADERS_TYPE, rows, buffers, children=[pairs])


_NOTHING: Final = Binary(np.empty(0, np.int32), np.empty(0, np.uint8), np.empty(0, np.uint8))
"""A column that is not wanted."""
