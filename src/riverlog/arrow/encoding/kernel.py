"""The kernel of encoding: rows to the records of batches, compiled by numba, in two passes.

`plan` gives every row its batch and its size, so that the caller can make exactly the room that is needed; `fill`
writes the records there. Both walk over the same rows in the same order. What `plan` gets was made by Arrow, which
keeps every end within its bytes. Columns are handed on by their addresses, 0 for one that is not there: arrays would be
counted at every call.
"""

from typing import Any, Final

import numpy as np
from numba.core import cgutils, types

from riverlog.arrow.decoding.kernel import Bytes, Ints, Longs, address_of, byte_at, compiled, copy_bytes, inline
from riverlog.arrow.encoding.kernel_columns import ContentColumn, HeaderColumn, NumberColumn
from riverlog.arrow.encoding.rows import HEADER_OVERHEAD, RECORD_OVERHEAD
from riverlog.records.batch import HEADER_BYTES

UNFIT_PARTITION, UNFIT_SIZE, UNFIT_HEADER = range(1, 4)

# One batch in `batches`: where it goes, how many records it has, their bytes, and the times among them.
SLOT, COUNT, SIZE, FIRST_MS, MAX_MS = range(5)
BATCH_FIELDS: Final = 5
# One topic in `topics`: its first slot, how many partitions it has, where rows without a key go, and for how long.
FIRST_SLOT, PARTITIONS, STICKY, STICKY_BYTES = range(4)
TOPIC_FIELDS: Final = 4

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFF_FFFF


@inline
def _word(_context: Any, position: Any) -> Any:
    """Read four bytes at an address, the lowest first."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], cgutils.int32_t.as_pointer())
        return builder.zext(builder.load(pointer, align=1), cgutils.intp_t)

    return types.int64(position), generate


@inline
def _put(_context: Any, position: Any, number: Any) -> Any:
    """Write the lowest byte of a number at an address."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], cgutils.voidptr_t)
        builder.store(builder.trunc(arguments[1], cgutils.int8_t), pointer)
        return cgutils.get_null_value(cgutils.voidptr_t)

    return types.void(position, number), generate


@compiled
def murmur2(data: int, length: int) -> int:
    """Hash bytes at an address as `riverlog.client.producer.partitioner.murmur2` does."""
    hashed = (_SEED ^ length) & _MASK
    end = data + (length & ~3)
    while data < end:
        word = (_word(data) * _M) & _MASK
        word ^= word >> 24
        word = (word * _M) & _MASK
        hashed = ((hashed * _M) & _MASK) ^ word
        data += 4
    rest = length & 3
    if rest:
        if rest == 3:
            hashed ^= byte_at(data + 2) << 16
        if rest >= 2:
            hashed ^= byte_at(data + 1) << 8
        hashed ^= byte_at(data)
        hashed = (hashed * _M) & _MASK
    hashed ^= hashed >> 13
    hashed = (hashed * _M) & _MASK
    return hashed ^ (hashed >> 15)


@compiled
def _place(array: Any) -> int:
    """Return the address of an array; 0 for an empty one."""
    return address_of(array) if array.shape[0] else 0


@compiled
def _is_there(valid: int, first: int, row: int) -> bool:
    """Look into a bitmap; where there is none, nothing is null."""
    if valid == 0:
        return True
    bit = first + row
    is_set: bool = (byte_at(valid + (bit >> 3)) >> (bit & 7)) & 1 != 0
    return is_set


@compiled
def _end_before(ends: int, row: int) -> int:
    """Return where a row's content begins, which is where the one before it ends."""
    end: int = _word(ends + (row << 2))
    return end


@compiled
def _zigzag(number: int) -> int:
    return (number << 1) ^ (number >> 63)


@compiled
def _bytes_of(number: int) -> int:
    """Count the bytes of a varint, which is zig-zag already."""
    size = 1
    while number > 0x7F:
        number >>= 7
        size += 1
    return size


@compiled
def _write(position: int, number: int) -> int:
    """Write a varint, which is zig-zag already, and return the address behind it."""
    while number > 0x7F:
        _put(position, number & 0x7F | 0x80)
        number >>= 7
        position += 1
    _put(position, number)
    return position + 1


@compiled
def _content_bytes(length: int) -> int:
    """Count the bytes of nullable content, whose length is -1 where it is null."""
    if length < 0:
        return 1
    size: int = _bytes_of(length << 1) + length
    return size


@compiled
def _length(ends: int, valid: int, first: int, row: int) -> int:
    """Return the length of a row's content; -1 where it is null, or there is no such column."""
    if ends == 0 or not _is_there(valid, first, row):
        return -1
    length: int = _end_before(ends, row + 1) - _end_before(ends, row)
    return length


@compiled
def _write_cell(position: int, data: int, ends: int, valid: int, first: int, row: int) -> int:
    """Write a row's content, or null, and return the address behind it."""
    length: int = _length(ends, valid, first, row)
    if length < 0:
        _put(position, 1)
        return position + 1
    position = _write(position, length << 1)
    copy_bytes(position, data + _end_before(ends, row), length)
    return position + length


@compiled
def plan(
    rows: int,
    keys: ContentColumn,
    values: ContentColumn,
    row_topics: Ints,
    partitions: NumberColumn,
    timestamps_ms: Longs,
    headers: HeaderColumn,
    batch_bytes_max: int,
    record_bytes_max: int,
    topics: Longs,
    open_batches: Longs,
    batches: Longs,
    batch_count: int,
    row_batches: Ints,
    row_sizes: Ints,
) -> tuple[int, int, int]:
    """Assign each row its batch and the size of its record, opening batches where one is full or there is none.

    Returns how many batches there are; then the flaw that ended it (0 where all is well) and its row.
    """
    key_data, key_at, key_bits = address_of(keys.content), _place(keys.ends), _place(keys.valid)
    value_at, value_bits = _place(values.ends), _place(values.valid)
    partition_at, partition_bits = _place(partitions.numbers), _place(partitions.valid)
    list_at, list_bits, names, contents = _place(headers.ends), _place(headers.valid), headers.names, headers.contents
    name_at, name_bits = _place(names.ends), _place(names.valid)
    content_at, content_bits = _place(contents.ends), _place(contents.valid)
    for row in range(rows):
        key_length = _length(key_at, key_bits, keys.first, row)
        value_length = _length(value_at, value_bits, values.first, row)
        header_count, header_bytes, header_size = np.int64(0), np.int64(0), np.int64(0)
        if list_at and _is_there(list_bits, headers.first, row):
            for header in range(_end_before(list_at, row), _end_before(list_at, row + 1)):
                name_length = _length(name_at, name_bits, names.first, header)
                if name_length < 0:
                    return batch_count, UNFIT_HEADER, row
                content_length = _length(content_at, content_bits, contents.first, header)
                header_count += 1
                header_size += HEADER_OVERHEAD + name_length + max(content_length, 0)
                header_bytes += _content_bytes(name_length) + _content_bytes(content_length)
        size_max = RECORD_OVERHEAD + max(key_length, 0) + max(value_length, 0) + header_size
        if size_max + HEADER_BYTES > record_bytes_max:
            return batch_count, UNFIT_SIZE, row
        topic = np.int64(row_topics[row]) if row_topics.shape[0] else np.int64(0)
        count = topics[topic, PARTITIONS]
        if partition_at and _is_there(partition_bits, partitions.first, row):
            partition = np.int64(partitions.numbers[row])
            if partition < 0 or partition >= count:
                return batch_count, UNFIT_PARTITION, row
        elif key_length >= 0:
            partition = (murmur2(key_data + _end_before(key_at, row), key_length) & 0x7FFF_FFFF) % count
        else:
            if topics[topic, STICKY_BYTES] <= 0:
                topics[topic, STICKY] = (topics[topic, STICKY] + 1) % count
                topics[topic, STICKY_BYTES] = batch_bytes_max
            topics[topic, STICKY_BYTES] -= size_max
            partition = topics[topic, STICKY]
        slot = topics[topic, FIRST_SLOT] + partition
        batch = open_batches[slot]
        timestamp_ms = timestamps_ms[row]
        if batch < 0 or HEADER_BYTES + batches[batch, SIZE] + size_max > batch_bytes_max:
            batch = batch_count
            batch_count += 1
            open_batches[slot] = batch
            batches[batch, SLOT] = slot
            batches[batch, COUNT] = 0
            batches[batch, SIZE] = 0
            batches[batch, FIRST_MS] = timestamp_ms
            batches[batch, MAX_MS] = timestamp_ms
        elif timestamp_ms > batches[batch, MAX_MS]:
            batches[batch, MAX_MS] = timestamp_ms
        size = (
            1
            + _bytes_of(_zigzag(timestamp_ms - batches[batch, FIRST_MS]))
            + _bytes_of(batches[batch, COUNT] << 1)
            + _content_bytes(key_length)
            + _content_bytes(value_length)
            + _bytes_of(header_count << 1)
            + header_bytes
        )
        row_batches[row] = batch
        row_sizes[row] = size
        batches[batch, COUNT] += 1
        batches[batch, SIZE] += _bytes_of(size << 1) + size
    return batch_count, 0, 0


@compiled
def fill(
    rows: int,
    keys: ContentColumn,
    values: ContentColumn,
    timestamps_ms: Longs,
    headers: HeaderColumn,
    row_batches: Ints,
    row_sizes: Ints,
    batches: Longs,
    filled: Longs,
    positions: Longs,
    output: Bytes,
) -> None:
    """Write rows behind each other into their batches; `positions` and `filled` say how far each is."""
    key_data, key_at, key_bits = address_of(keys.content), _place(keys.ends), _place(keys.valid)
    value_data, value_at, value_bits = address_of(values.content), _place(values.ends), _place(values.valid)
    list_at, list_bits, names, contents = _place(headers.ends), _place(headers.valid), headers.names, headers.contents
    name_data, name_at, name_bits = address_of(names.content), _place(names.ends), _place(names.valid)
    content_data, content_at, content_bits = address_of(contents.content), _place(contents.ends), _place(contents.valid)
    start = address_of(output)
    for row in range(rows):
        batch = row_batches[row]
        position = start + positions[batch]
        position = _write(position, np.int64(row_sizes[row]) << 1)
        _put(position, 0)
        position = _write(position + 1, _zigzag(timestamps_ms[row] - batches[batch, FIRST_MS]))
        position = _write(position, filled[batch] << 1)
        filled[batch] += 1
        position = _write_cell(position, key_data, key_at, key_bits, keys.first, row)
        position = _write_cell(position, value_data, value_at, value_bits, values.first, row)
        if list_at and _is_there(list_bits, headers.first, row):
            first, last = _end_before(list_at, row), _end_before(list_at, row + 1)
            position = _write(position, (last - first) << 1)
            for header in range(first, last):
                position = _write_cell(position, name_data, name_at, name_bits, names.first, header)
                position = _write_cell(position, content_data, content_at, content_bits, contents.first, header)
        else:
            _put(position, 0)
            position += 1
        positions[batch] = position - start
