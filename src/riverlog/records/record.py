"""Single records: a batch taken apart, a batch put together.

For clients, tools and compaction; the broker's road of a request never comes here. A record inside a batch:

    length varint · attributes i8 · timestamp delta varlong · offset delta varint
    key length varint · key · value length varint · value
    header count varint · for each header: name length varint · name · value length varint · value

Varints are zig-zag; a length of -1 is null. `read_batch` gives all records of a batch or raises CorruptBatch, and
nothing else, whatever the bytes are.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import (
    NO_EPOCH,
    NO_PRODUCER,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    LeaderEpoch,
    Offset,
    ProducerEpoch,
    ProducerId,
)
from riverlog.model.limits import DECOMPRESSED_BYTES_MAX
from riverlog.model.ports import Buffer
from riverlog.records.batch import (
    ATTRIBUTES_POSITION,
    CONTROL,
    CRC_POSITION,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    RECORD_BYTES_MIN,
    TRANSACTIONAL,
    BatchHeader,
    Compression,
    checksum,
    headers,
    read_header,
)
from riverlog.records.compression import compress, decompress
from riverlog.records.errors import CorruptBatch
from riverlog.records.varint import VARINT_BYTES_MAX, VARINTS, compile_flat, read_varint


class Header(NamedTuple):
    """A record's header: a name and bytes. Names may repeat, order is kept."""

    key: str
    value: bytes | None


class Record(NamedTuple):
    """One record as its reader sees it: offset and timestamp (milliseconds) are absolute."""

    offset: Offset
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


class ControlType(IntEnum):
    """What a control record says; the only records of a control batch."""

    ABORT = 0
    COMMIT = 1


HeadersLike = Mapping[str, bytes | None] | Iterable[tuple[str, bytes | None]]
"""What a writer may give as headers: a mapping, or pairs where names repeat."""


# Reading --------------------------------------------------------------------------------------------------


def read_batch(batch: Buffer, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> list[Record]:
    """Read the records of one whole batch after checking its checksum and counts; raise CorruptBatch otherwise."""
    header = check_batch(batch)
    return records_in(unfolded(batch, header, decompressed_bytes_max=decompressed_bytes_max), header)


def check_batch(batch: Buffer) -> BatchHeader:
    """Read the header of one whole batch whose size and checksum are right; raise CorruptBatch otherwise."""
    if len(batch) <= MAGIC_POSITION:
        raise CorruptBatch(f"{len(batch)} bytes are too few for a record batch")
    _check_magic(batch[MAGIC_POSITION])
    if len(batch) < HEADER_BYTES:
        raise CorruptBatch(f"{len(batch)} bytes are too few for a record batch")
    header = read_header(batch)
    if header.size != len(batch):
        raise CorruptBatch(f"the batch says that it has {header.size} bytes, but {len(batch)} are there")
    if checksum(batch) != header.crc:
        raise CorruptBatch("the batch's checksum does not match its content")
    return header


def read_batches(
    buffer: Buffer, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[tuple[BatchHeader, list[Record]]]:
    """Read header and records of each whole batch in fetched bytes; an incomplete last batch is left out.

    Control batches are given too: their header says `is_control`, and `control_type` reads their only record.
    """
    view = memoryview(buffer)
    if len(view) > MAGIC_POSITION:
        _check_magic(view[MAGIC_POSITION])
    for position, header in headers(view):
        batch = view[position : position + header.size]
        yield header, read_batch(batch, decompressed_bytes_max=decompressed_bytes_max)


def control_type(record: Record) -> ControlType | None:
    """Read a control batch's record; None for a type that is not known and says nothing about transactions."""
    if record.key is None or len(record.key) < _CONTROL_KEY.size:
        raise CorruptBatch("a control record has no type")
    _, number = _CONTROL_KEY.unpack_from(record.key)
    return ControlType(number) if number in (ControlType.ABORT, ControlType.COMMIT) else None


_CONTROL_KEY: Final = Struct(">hh")  # version, type


def _check_magic(magic: int) -> None:
    if magic < MAGIC:
        raise CorruptBatch(
            f"record format {magic} is not supported; only record batches of format 2 (Kafka 0.11 and later) are",
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        )
    if magic > MAGIC:
        raise CorruptBatch(f"record format {magic} does not exist")


def unfolded(batch: Buffer, header: BatchHeader, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> Buffer:
    """Decompress the bytes of a batch's records within the bound; they have room for as many as it counts."""
    data = decompress(
        header.compression, memoryview(batch)[HEADER_BYTES:], decompressed_bytes_max=decompressed_bytes_max
    )
    if not 0 <= header.record_count * RECORD_BYTES_MIN <= len(data):
        raise CorruptBatch(f"the batch counts {header.record_count} records in {len(data)} bytes")
    return data


def records_in(content: Buffer, header: BatchHeader) -> list[Record]:
    """Take the unfolded bytes of a batch apart; raise CorruptBatch where they are not the records that it counts."""
    data = bytes(content)
    try:
        return _decode(data, header)
    except IndexError:
        raise CorruptBatch("a record is cut off") from None
    except UnicodeDecodeError:
        raise CorruptBatch("the name of a record's header is not UTF-8") from None


def _decode_headers(data: bytes, position: int, record_end: int) -> tuple[tuple[Header, ...], int]:
    count, position = read_varint(data, position)
    if not 0 <= count * 2 <= record_end - position:
        raise CorruptBatch(f"a record counts {count} headers in {record_end - position} bytes")
    found: list[Header] = []
    for _ in range(count):
        length, position = read_varint(data, position)
        if length < 0:
            raise CorruptBatch("a record's header has no name")
        name = data[position : position + length].decode()
        position += length
        length, position = read_varint(data, position)
        if length < 0:
            _check_null(2 * -length - 1)
            found.append(Header(name, None))
            continue
        found.append(Header(name, data[position : position + length]))
        position += length
    return tuple(found), position


def _check_null(number: int) -> None:
    if number != 1:
        raise CorruptBatch(f"a length of {-(number >> 1) - 1} is announced")


_decode: Final[Callable[[bytes, BatchHeader], list[Record]]] = compile_flat(
    "decode",
    """
def decode(data, header):
    records = []
    base_offset = header.base_offset
    base_timestamp = header.first_timestamp
    stamped = header.attributes & LOG_APPEND_TIME
    last_delta = -1
    position = 0
    new = tuple.__new__
    for _ in range(header.record_count):
        VARINT
        record_end = position + (number >> 1)  # a negative length is odd and ends up before the fields
        if number & 1 or record_end > len(data):
            raise CorruptBatch("a record is longer than its batch")
        position += 1  # attributes: none are in use

        VARINT
        timestamp = header.max_timestamp if stamped else base_timestamp + ((number >> 1) ^ -(number & 1))

        VARINT
        delta = (number >> 1) ^ -(number & 1)
        if delta <= last_delta:
            raise CorruptBatch(f"offset delta {delta} follows {last_delta}")
        last_delta = delta

        VARINT
        if number & 1:
            check_null(number)
            key = None
        else:
            end = position + (number >> 1)
            key = data[position:end]
            position = end

        VARINT
        if number & 1:
            check_null(number)
            value = None
        else:
            end = position + (number >> 1)
            value = data[position:end]
            position = end

        if data[position]:
            record_headers, position = decode_headers(data, position, record_end)
        else:
            record_headers = ()
            position += 1

        if position != record_end:
            raise CorruptBatch("a record's fields do not fill its length")
        records.append(new(Record, (base_offset + delta, timestamp, key, value, record_headers)))
    if last_delta > header.last_offset_delta:
        raise CorruptBatch(f"offset delta {last_delta} is beyond the batch's last, {header.last_offset_delta}")
    if position != len(data):
        raise CorruptBatch(f"{len(data) - position} bytes stand behind the last record")
    return records
""",
    {
        "LOG_APPEND_TIME": LOG_APPEND_TIME,
        "Record": Record,
        "check_null": _check_null,
        "decode_headers": _decode_headers,
    },
)
"""Take all records of a batch apart: where reading spends its time, once per record."""


# Writing --------------------------------------------------------------------------------------------------


class BatchBuilder:
    """Collects records and builds one batch of them.

    The producer's fields may be set until `build`: an idempotent producer knows its sequence only when it sends.
    """

    __slots__ = (
        "_data", "_first_timestamp", "_max_timestamp", "base_sequence", "compression", "control", "count", "level",
        "producer_epoch", "producer_id", "transactional",
    )  # fmt: skip

    def __init__(
        self,
        compression: Compression = Compression.NONE,
        *,
        producer_id: ProducerId = NO_PRODUCER,
        producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        transactional: bool = False,
        control: bool = False,
        level: int | None = None,
    ) -> None:
        self.compression = compression
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.transactional = transactional
        self.control = control
        self.level = level
        self.count = 0
        self._data = bytearray()
        self._first_timestamp = -1
        self._max_timestamp = -1

    def append(self, key: bytes | None, value: bytes | None, headers: HeadersLike = (), *, timestamp_ms: int) -> int:
        """Add a record and give its offset delta: 0 for the first one."""
        delta = self.count
        if delta == 0:
            self._first_timestamp = self._max_timestamp = timestamp_ms
        elif timestamp_ms > self._max_timestamp:
            self._max_timestamp = timestamp_ms
        varint = VARINTS
        parts = [b"\x00", varint[timestamp_ms - self._first_timestamp], varint[delta]]
        if key is None:
            parts.append(b"\x01")
        else:
            parts += (varint[len(key)], key)
        if value is None:
            parts.append(b"\x01")
        else:
            parts += (varint[len(value)], value)
        if headers:
            _append_headers(parts, headers)
        else:
            parts.append(b"\x00")
        body = b"".join(parts)
        self._data += varint[len(body)]
        self._data += body
        self.count = delta + 1
        return delta

    @property
    def size(self) -> int:
        """Return the bytes that the batch has before compression, header included."""
        return HEADER_BYTES + len(self._data)

    @property
    def max_timestamp(self) -> int:
        """Return the largest timestamp so far, in milliseconds; -1 before the first record."""
        return self._max_timestamp

    def build(self, base_offset: Offset = Offset(0), leader_epoch: LeaderEpoch = NO_EPOCH) -> bytearray:  # noqa: B008
        """Build the whole batch, compressed and with its checksum. May be called again after changing a field."""
        assert self.count > 0, "a batch holds at least one record"
        records = compress(self.compression, self._data, self.level)
        attributes = self.compression | (TRANSACTIONAL if self.transactional else 0) | (CONTROL if self.control else 0)
        batch = bytearray(HEADER_BYTES)
        batch += records
        write_header(
            batch,
            attributes=attributes,
            count=self.count,
            first_timestamp=self._first_timestamp,
            max_timestamp=self._max_timestamp,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            producer=(self.producer_id, self.producer_epoch, self.base_sequence),
        )
        return batch


BATCH_BYTES_MAX: Final = 2**31 - 1
"""The largest batch that can say how long it is."""


def check_size(builder: BatchBuilder, bytes_max: int) -> None:
    """Refuse a batch that grows larger than it may be."""
    if builder.size > bytes_max:
        raise Refusal(ErrorCode.RECORD_LIST_TOO_LARGE, f"It takes more than {bytes_max} bytes to write down.")


NOBODY: Final = (NO_PRODUCER, NO_PRODUCER_EPOCH, NO_SEQUENCE)


def write_header(
    batch: bytearray | memoryview,
    *,
    attributes: int,
    count: int,
    first_timestamp: int,
    max_timestamp: int,
    base_offset: Offset = Offset(0),  # noqa: B008
    leader_epoch: LeaderEpoch = NO_EPOCH,
    producer: tuple[ProducerId, ProducerEpoch, int] = NOBODY,
) -> None:
    """Write the header of records that stand behind the room for it: all fields, and the checksum."""
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - LOG_OVERHEAD,
        leader_epoch,
        MAGIC,
        0,
        attributes,
        count - 1,
        first_timestamp,
        max_timestamp,
        *producer,
        count,
    )
    _CRC.pack_into(batch, CRC_POSITION, checksum(batch))


_CRC: Final = Struct(">I")
assert CRC_POSITION + _CRC.size == ATTRIBUTES_POSITION


def record_bytes_max(key: bytes | None, value: bytes | None, headers: HeadersLike = ()) -> int:
    """Return a bound on the bytes that a record adds to a batch: what a writer must have room for."""
    size = _FIELDS_BYTES_MAX
    if key is not None:
        size += len(key)
    if value is not None:
        size += len(value)
    if headers:
        for name, content in headers.items() if isinstance(headers, Mapping) else headers:
            size += 2 * _LENGTH_BYTES_MAX + 4 * len(name) + len(content or b"")
    return size


_LENGTH_BYTES_MAX: Final = 5
_FIELDS_BYTES_MAX: Final = 5 * _LENGTH_BYTES_MAX + VARINT_BYTES_MAX + 1


def _append_headers(parts: list[bytes], headers: HeadersLike) -> None:
    pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
    parts.append(VARINTS[len(pairs)])
    for name, value in pairs:
        encoded = name.encode()
        parts += (VARINTS[len(encoded)], encoded)
        if value is None:
            parts.append(b"\x01")
        else:
            parts += (VARINTS[len(value)], value)
