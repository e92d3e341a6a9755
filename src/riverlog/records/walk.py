"""The records of a batch as slices of its bytes: judged by key and value, and kept or dropped as they lie there.

For compaction, and for topics in which every record needs a key. A batch of which some records stay keeps all that
its header says about offsets and its producer, so that neither readers nor retries see a difference: the others are a
gap. Bad bytes are CorruptBatch, as for `read_batch`; checksums are the caller's.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_TIMESTAMP, TIMESTAMP_MAX
from riverlog.model.limits import DECOMPRESSED_BYTES_MAX, LOOKED_INTO_RECORDS_MAX
from riverlog.model.ports import Buffer
from riverlog.records.batch import (
    COMPRESSION_MASK,
    DELETE_HORIZON,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    BatchHeader,
    Compression,
    checksum,
)
from riverlog.records.compression import compress
from riverlog.records.errors import BadRecords, BatchTooLarge
from riverlog.records.limits import RECORD_ERRORS_MAX, UNFOLDED_BATCHES_MAX
from riverlog.records.record import unfolded
from riverlog.records.varint import VARINTS, compile_flat

_LONG_SIGN: Final = 1 << 63
_LONG_MASK: Final = (1 << 64) - 1


class RecordSlice(NamedTuple):
    """One record: where it lies in the unfolded bytes, and what decides about it."""

    start: int
    end: int
    behind_timestamp: int
    """Where the fields behind the timestamp begin."""
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def unfold(batch: Buffer, header: BatchHeader, *, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """Return the bytes of all records, decompressed within the bound; BatchTooLarge where they are more."""
    return bytes(unfolded(batch, header, decompressed_bytes_max=bytes_max))


walk: Final[Callable[[bytes, BatchHeader], Iterator[RecordSlice]]] = compile_flat(
    "walk",
    """
def walk(data, header):
    position, last_delta, end = 0, -1, len(data)
    last_delta_max = header.last_offset_delta
    new = tuple.__new__
    try:
        for _ in range(header.record_count):
            start = position
            VARINT
            record_end = position + (number >> 1)
            is_cut = number & 1 or record_end > end
            position += 1  # attributes: none are in use

            VARINT
            timestamp_delta = (number >> 1) ^ -(number & 1)
            behind_timestamp = position

            VARINT
            offset_delta = (number >> 1) ^ -(number & 1)

            VARINT
            if number & 1:
                key = None
            else:
                key_end = position + (number >> 1)
                key = data[position:key_end]
                position = key_end

            VARINT
            has_value = not number & 1
            if has_value:
                position += number >> 1

            if is_cut or position >= record_end:  # a count of headers follows in any case
                raise CorruptBatch("a record is longer than its batch, or shorter than its fields")
            if not last_delta < offset_delta <= last_delta_max:
                raise CorruptBatch(f"offset delta {offset_delta} follows {last_delta}")
            yield new(RecordSlice, (start, record_end, behind_timestamp, timestamp_delta, offset_delta, key, has_value))
            position, last_delta = record_end, offset_delta
    except IndexError:
        raise CorruptBatch("a record is cut off") from None
    if position != end:
        raise CorruptBatch(f"{end - position} bytes stand behind the last record")
""",
    {"RecordSlice": RecordSlice},
)
"""Find every record in the unfolded bytes, in order; nothing but what `RecordSlice` names is looked at.

Written flat, like the reading of whole records: the cases of one and two bytes of every varint are in line."""


class _FindRecord(Protocol):
    def __call__(
        self, data: bytes, header: BatchHeader, timestamp_ms: int, *, offset_delta_min: int
    ) -> tuple[int, int] | None: ...


find_record: Final[_FindRecord] = compile_flat(
    "find_record",
    """
def find_record(data, header, timestamp_ms, *, offset_delta_min):
    base, position, end = header.first_timestamp, 0, len(data)
    least, most = timestamp_ms - base, TIMESTAMP_MAX - base
    try:
        for _ in range(header.record_count):
            VARINT
            record_end = position + (number >> 1)
            if number & 1 or record_end > end:
                raise CorruptBatch("a record is longer than its batch")
            position += 1  # attributes: none are in use
            VARINT
            timestamp_delta = (number >> 1) ^ -(number & 1)
            if least <= timestamp_delta <= most:
                number, position = long_varint(data, position)
                offset_delta = (number >> 1) ^ -(number & 1)
                if offset_delta_min <= offset_delta <= header.last_offset_delta:
                    return offset_delta, base + timestamp_delta
            position = record_end
    except IndexError:
        raise CorruptBatch("a record is cut off") from None
    return None
""",
    {"TIMESTAMP_MAX": TIMESTAMP_MAX},
)
"""Find the first record as late as this, from an offset on, in a batch whose clients stamped the records.

Returns its offset delta and its time. Looks at two numbers of each record: a tenth of the work of `walk`."""


def check_keys(batch: Buffer, header: BatchHeader, *, batch_bytes_max: int) -> None:
    """Refuse a batch with a record that has no key: compaction would not know what it replaces.

    Refuse one, too, that unfolds to far more than a batch may have; producers send the same in smaller ones.
    """
    bytes_max = min(UNFOLDED_BATCHES_MAX * batch_bytes_max, DECOMPRESSED_BYTES_MAX)
    if header.record_count > LOOKED_INTO_RECORDS_MAX:
        raise Refusal(ErrorCode.MESSAGE_TOO_LARGE, f"a batch of {header.record_count} records is too large; send fewer")
    try:
        data = unfold(batch, header, bytes_max=bytes_max)
    except BatchTooLarge:
        raise Refusal(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch unfolds to more than {bytes_max} bytes, which a compacted topic does not take; send fewer",
        ) from None
    without = [record.offset_delta for record in walk(data, header) if record.key is None]
    if without:
        raise BadRecords(dict.fromkeys(without[:RECORD_ERRORS_MAX], "a compacted topic takes no record without a key"))


def keep(
    header: BatchHeader, data: bytes, kept: Sequence[RecordSlice], *, delete_horizon_ms: int | None = None
) -> bytearray:
    """Build the batch anew with these of its records, at least one; a horizon says until when tombstones stay.

    The horizon stands where the first timestamp was (KIP-534), and the records' times are written relative to it.
    """
    base, attributes, maximum = header.first_timestamp, header.attributes, header.max_timestamp
    if not attributes & LOG_APPEND_TIME:
        maximum = max(_wrapped(base + record.timestamp_delta) for record in kept)
    if delete_horizon_ms is None:
        parts: Iterable[bytes] = (data[record.start : record.end] for record in kept)
    else:
        shift = base - delete_horizon_ms
        parts = (_shifted(data, record, shift) for record in kept)
        base, attributes = delete_horizon_ms, attributes | DELETE_HORIZON
    records = compress(Compression(header.compression), b"".join(parts))
    changed = header._replace(
        attributes=attributes, first_timestamp=base, max_timestamp=maximum, record_count=len(kept)
    )
    return _batch(changed, records)


def empty(header: BatchHeader) -> bytearray:
    """Build the batch without its records: what is left says which offsets and sequences there were."""
    attributes = header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON)
    return _batch(header._replace(attributes=attributes, first_timestamp=NO_TIMESTAMP, record_count=0), b"")


def _shifted(data: bytes, record: RecordSlice, shift: int) -> bytes:
    body = b"\x00" + VARINTS[_wrapped(record.timestamp_delta + shift)] + data[record.behind_timestamp : record.end]
    return VARINTS[len(body)] + body


def _wrapped(number: int) -> int:
    """Return a number as 64 bits hold it: so other clients read a time whose delta leads out of them."""
    return (number + _LONG_SIGN & _LONG_MASK) - _LONG_SIGN


def _batch(header: BatchHeader, records: Buffer) -> bytearray:
    batch = bytearray(HEADER_BYTES)
    batch += records
    fields = header._replace(length=len(batch) - LOG_OVERHEAD)
    HEADER.pack_into(batch, 0, *fields)
    HEADER.pack_into(batch, 0, *fields._replace(crc=checksum(batch)))
    return batch


def delete_horizon(header: BatchHeader) -> int | None:
    """Return the time until which the batch's tombstones stay, if that was decided already."""
    return header.first_timestamp if header.attributes & DELETE_HORIZON else None
