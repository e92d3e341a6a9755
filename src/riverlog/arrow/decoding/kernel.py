"""The kernel: records of whole batches to the buffers of Arrow columns, compiled by numba.

Nothing is read outside the runs and nothing written outside what the caller has made room for, whatever the bytes are:
a length is compared with what is left before it is added. The first thing that is wrong ends the call with a flaw.
All numbers are signed and of 64 bits; numba would turn a mix of signs into floats.

The compiled form is kept beside this file, or where the user's caches are, or in NUMBA_CACHE_DIR.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


_CUT_OFF, _TOO_LONG, _OUT_OF_ORDER, _NO_LENGTH, _NOT_FILLED, _HEADERS, _BEHIND = range(1, 8)
FLAWS: Final = {
    _CUT_OFF: "a record is cut off, or a number has more than 64 bits",
    _TOO_LONG: "a record is longer than its batch",
    _OUT_OF_ORDER: "an offset does not follow the one before it, or is beyond the batch's last",
    _NO_LENGTH: "a length below -1 is announced",
    _NOT_FILLED: "a record's fields do not fill its length",
    _HEADERS: "a record counts more headers than fit into it",
    _BEHIND: "bytes stand behind the last record",
}
"""What can be wrong with records, in words."""

# One batch in `runs`: the addresses where its records begin and end, how many they are, and what its header says about
# them.
START, END, COUNT, BASE_OFFSET, LAST_DELTA, TIMESTAMP_MS, IS_STAMPED = range(7)
RUN_FIELDS: Final = 7

_POSITIVE: Final = 0x7FFF_FFFF_FFFF_FFFF
_LAST_SHIFT: Final = 63
_NULL: Final = 1
"""A length of -1, still zig-zag."""

inline: Callable[[Any], Any] = intrinsic


@inline
def address_of(_context: Any, array: Any) -> Any:
    """Return the address of an array's bytes. To pass the array itself would count references, ten times per record."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(found.data, context.get_value_type(types.int64))

    return types.int64(array), generate


@inline
def byte_at(_context: Any, address: Any) -> Any:
    """Read the byte at an address."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        byte = builder.load(builder.inttoptr(arguments[0], cgutils.voidptr_t))
        return builder.zext(byte, cgutils.intp_t)

    return types.int64(address), generate


@inline
def copy_bytes(_context: Any, target: Any, source: Any, count: Any) -> Any:
    """Copy bytes from one address to another, as memcpy does."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        into, out = (builder.inttoptr(address, cgutils.voidptr_t) for address in arguments[:2])
        cgutils.raw_memcpy(builder, into, out, arguments[2], 1)
        return cgutils.get_null_value(cgutils.voidptr_t)

    return types.void(target, source, count), generate


def compiled(function: Any) -> Any:
    """Compile with a cache; without one where no folder can be written."""
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)


@compiled
def _varint(data: int, position: int, end: int) -> tuple[int, int]:
    """Read a number, still zig-zag, and the position behind it; -1 as position where there is none."""
    number, shift = 0, 0
    while position < end and shift <= _LAST_SHIFT:
        byte = byte_at(data + position)
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if shift == _LAST_SHIFT and byte > 1:
                break
            return number, position
        shift += 7
    return 0, -1


@compiled
def _signed(number: int) -> int:
    return ((number >> 1) & _POSITIVE) ^ -(number & 1)


@compiled
def _added(one: int, other: int) -> int:
    """Add, and stay at the largest number there is where the sum has more bits."""
    total = one + other
    if ((one ^ total) & (other ^ total)) < 0:
        return _POSITIVE
    return total


@compiled
def _content(data: int, position: int, end: int) -> tuple[int, int, int]:
    """Find nullable bytes: their start, their length or -1, and what is wrong with it."""
    number, position = _varint(data, position, end)
    if position < 0:
        return -1, -1, _CUT_OFF
    if number & 1:
        if number != _NULL:
            return -1, -1, _NO_LENGTH
        return position, -1, 0
    length = (number >> 1) & _POSITIVE
    if length > end - position:
        return -1, -1, _CUT_OFF
    return position, length, 0


@compiled
def _measure_headers(data: int, position: int, record_end: int, end: int) -> tuple[int, int, int, int, int]:
    """Walk over a record's headers: the position behind them, what is wrong, how many, and their bytes."""
    number, position = _varint(data, position, end)
    if position < 0:
        return -1, _CUT_OFF, 0, 0, 0
    count = _signed(number)
    left = record_end - position
    if count < 0 or left < 0 or count > left // 2:
        return -1, _HEADERS, 0, 0, 0
    name_bytes, value_bytes = 0, 0
    for _ in range(count):
        start, length, flaw = _content(data, position, end)
        if flaw == 0 and length < 0:
            flaw = _NO_LENGTH
        if flaw != 0:
            return -1, flaw, 0, 0, 0
        name_bytes += length
        start, length, flaw = _content(data, start + length, end)
        if flaw != 0:
            return -1, flaw, 0, 0, 0
        value_bytes += max(length, 0)
        position = start + max(length, 0)
    return position, 0, count, name_bytes, value_bytes


@compiled
def decode(
    runs: Longs,
    from_offset: int,
    until_offset: int,
    timestamp_ms_min: int,
    wants_headers: bool,
    offsets: Longs,
    timestamps_ms: Longs,
    timestamp_types: Ints,
    key_ends: Ints,
    key_valid: Bytes,
    keys: Bytes,
    value_ends: Ints,
    value_valid: Bytes,
    values: Bytes,
    header_starts: Longs,
) -> tuple[int, int, int, int, int, int, int, int]:
    """Fill columns with the records of all runs that lie within the cut. Columns without room are left out.

    Gives the flaw that ended it (0 where all is well) and its run; then counts: rows, null keys, null values, headers,
    bytes of their names and of their values. Where each row's headers lie goes to `header_starts`.

    Written flat and in one piece: a tuple of arrays, or an array of counts, would make it ten times slower.
    """
    data, key_data, value_data = np.int64(0), address_of(keys), address_of(values)
    row, key_nulls, value_nulls, headers, name_bytes, header_bytes = 0, 0, 0, 0, 0, 0
    key_filled, value_filled = np.int64(0), np.int64(0)
    wants_key, wants_value = key_ends.shape[0] > 0, value_ends.shape[0] > 0
    for run in range(runs.shape[0]):
        position, end = runs[run, START], runs[run, END]
        base_offset, delta_max = runs[run, BASE_OFFSET], runs[run, LAST_DELTA]
        base_ms, is_stamped = runs[run, TIMESTAMP_MS], runs[run, IS_STAMPED]
        last_delta = np.int64(-1)
        flaw = 0
        for _ in range(runs[run, COUNT]):
            number, position = _varint(data, position, end)
            length = (number >> 1) & _POSITIVE
            if position < 0 or number & 1 or length > end - position:
                flaw = _TOO_LONG
                break
            record_end = position + length
            number, position = _varint(data, position + 1, end)  # behind the attributes: none are in use
            if position < 0:
                flaw = _CUT_OFF
                break
            timestamp_ms = base_ms if is_stamped else _added(base_ms, _signed(number))
            number, position = _varint(data, position, end)
            delta = _signed(number)
            if position < 0 or delta <= last_delta or delta > delta_max:
                flaw = _OUT_OF_ORDER
                break
            last_delta = delta
            key_start, key_length, flaw = _content(data, position, end)
            if flaw != 0:
                break
            value_start, value_length, flaw = _content(data, key_start + max(key_length, 0), end)
            if flaw != 0:
                break
            position = header_start = value_start + max(value_length, 0)
            count, names, contents = 0, 0, 0
            if wants_headers:
                position, flaw, count, names, contents = _measure_headers(data, position, record_end, end)
                if flaw == 0 and position != record_end:
                    flaw = _NOT_FILLED
            elif position >= record_end:
                flaw = _NOT_FILLED
            if flaw != 0:
                break
            position = record_end
            offset = base_offset + delta
            if offset < from_offset or offset >= until_offset or timestamp_ms < timestamp_ms_min:
                continue
            offsets[row] = offset
            timestamps_ms[row] = timestamp_ms
            timestamp_types[row] = is_stamped
            if wants_key:
                if key_length < 0:
                    key_nulls += 1
                else:
                    key_valid[row >> 3] |= np.uint8(1 << (row & 7))
                    copy_bytes(key_data + key_filled, data + key_start, key_length)
                    key_filled += key_length
                key_ends[row + 1] = key_filled
            if wants_value:
                if value_length < 0:
                    value_nulls += 1
                else:
                    value_valid[row >> 3] |= np.uint8(1 << (row & 7))
                    copy_bytes(value_data + value_filled, data + value_start, value_length)
                    value_filled += value_length
                value_ends[row + 1] = value_filled
            if wants_headers:
                header_starts[row] = header_start
                headers += count
                name_bytes += names
                header_bytes += contents
            row += 1
        if flaw == 0 and position != end:
            flaw = _BEHIND
        if flaw != 0:
            return flaw, run, row, key_nulls, value_nulls, headers, name_bytes, header_bytes
    return 0, 0, row, key_nulls, value_nulls, headers, name_bytes, header_bytes


@compiled
def decode_headers(
    starts: Longs,
    list_ends: Ints,
    list_valid: Bytes,
    name_ends: Ints,
    names: Bytes,
    value_ends: Ints,
    value_valid: Bytes,
    values: Bytes,
) -> None:
    """Fill the headers of rows that `decode` has found whole; the caller has made room for what it counted."""
    data, name_data, value_data, end = np.int64(0), address_of(names), address_of(values), _POSITIVE
    header, name_filled, value_filled = 0, np.int64(0), np.int64(0)
    for row in range(starts.shape[0]):
        number, position = _varint(data, starts[row], end)
        count = _signed(number)
        if count > 0:
            list_valid[row >> 3] |= np.uint8(1 << (row & 7))
        for _ in range(count):
            start, length, _flaw = _content(data, position, end)
            copy_bytes(name_data + name_filled, data + start, length)
            name_filled += length
            name_ends[header + 1] = name_filled
            start, length, _flaw = _content(data, start + length, end)
            if length >= 0:
                value_valid[header >> 3] |= np.uint8(1 << (header & 7))
                copy_bytes(value_data + value_filled, data + start, length)
                value_filled += length
            value_ends[header + 1] = value_filled
            position = start + max(length, 0)
            header += 1
        list_ends[row + 1] = header
