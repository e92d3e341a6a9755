"""The header of a record batch, read and patched in place over a memoryview.

Layout (Kafka's format v2; the checksum covers all from `attributes` on, so base offset and leader epoch
can be written without touching it):

    0 base offset i64 · 8 length i32 · 12 leader epoch i32 · 16 magic i8 · 17 crc u32 · 21 attributes i16
    23 last offset delta i32 · 27 first timestamp i64 · 35 max timestamp i64 · 43 producer id i64
    51 producer epoch i16 · 53 base sequence i32 · 57 record count i32 · 61 records

`length` counts the bytes behind itself. Nothing here decodes a record.
"""

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from riverlog.model.ports import Buffer

HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = 61
LOG_OVERHEAD: Final = 12
"""Base offset and length: what stands before the bytes that `length` counts."""
MAGIC_POSITION: Final = 16
CRC_POSITION: Final = 17
ATTRIBUTES_POSITION: Final = 21
MAGIC: Final = 2

_PREFIX: Final = Struct(">qi")
_OFFSET: Final = Struct(">q")
_ASSIGNED: Final = Struct(">qii")
_CRC: Final = Struct(">I")
_ATTRIBUTES: Final = Struct(">h")
MAX_TIMESTAMP_POSITION: Final = 35
_PRODUCER: Final = Struct(">qhi")
_PRODUCER_POSITION: Final = 43

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

assert HEADER.size == HEADER_BYTES


class Compression(IntEnum):
    """The codec of a batch's records, as in the low three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    """Whose clock stamped the records."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class BatchHeader(NamedTuple):
    """All fields of a batch header, in wire order."""

    base_offset: Offset
    length: int
    leader_epoch: LeaderEpoch
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    first_timestamp: int
    max_timestamp: int
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Return the whole batch's size in bytes, header included."""
        return LOG_OVERHEAD + self.length

    @property
    def last_offset(self) -> Offset:
        return Offset(self.base_offset + self.last_offset_delta)

    @property
    def next_offset(self) -> Offset:
        return Offset(self.base_offset + self.last_offset_delta + 1)

    @property
    def last_sequence(self) -> int:
        """Return the sequence of the last record; sequences wrap at 2^31 to 0."""
        if self.base_sequence < 0:
            return self.base_sequence
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType.LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME else TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read the header at `position`; the caller has made sure that 61 bytes are there."""
    return BatchHeader._make(HEADER.unpack_from(buffer, position))


def checksum(batch: Buffer) -> int:
    """Compute the CRC-32C that belongs into the header of this whole batch."""
    return int(crc32c(memoryview(batch)[ATTRIBUTES_POSITION:]))


def check_produced(batch: memoryview, *, batch_bytes_max: int) -> BatchHeader:
    """Check one batch as a client sent it, without decoding a record; return its header or raise Refusal.

    The buffer must hold exactly one batch: Kafka allows one batch per partition and request.
    """
    size = len(batch)
    if size <= MAGIC_POSITION:
        raise Refusal(ErrorCode.INVALID_RECORD, f"{size} bytes are too few for a record batch")
    magic = batch[MAGIC_POSITION]
    if magic != MAGIC:
        if magic < MAGIC:
            raise Refusal(
                ErrorCode.INVALID_RECORD,
                f"record format {magic} is not supported; send record batches of format 2 (Kafka 0.11 and later)",
            )
        raise Refusal(ErrorCode.CORRUPT_MESSAGE, f"record format {magic} does not exist")
    if size < HEADER_BYTES:
        raise Refusal(ErrorCode.INVALID_RECORD, f"{size} bytes are too few for a record batch")
    fields = HEADER.unpack_from(batch)
    _, length, _, _, crc, attributes, last_delta, first_ms, last_ms, producer_id, epoch, sequence, record_count = fields
    if length + LOG_OVERHEAD != size:
        if HEADER_BYTES <= length + LOG_OVERHEAD < size:
            raise Refusal(ErrorCode.INVALID_RECORD, "more than one record batch was sent for one partition")
        raise Refusal(
            ErrorCode.INVALID_RECORD, f"the batch says that it has {length + LOG_OVERHEAD} bytes, but {size} arrived"
        )
    if size > batch_bytes_max:
        raise Refusal(
            ErrorCode.MESSAGE_TOO_LARGE, f"the batch has {size} bytes; max.message.bytes allows {batch_bytes_max}"
        )
    if crc32c(batch[ATTRIBUTES_POSITION:]) != crc:
        raise Refusal(ErrorCode.CORRUPT_MESSAGE, "the batch's checksum does not match its content")
    if record_count <= 0 or last_delta != record_count - 1:
        raise Refusal(
            ErrorCode.INVALID_RECORD,
            f"the batch counts {record_count} records but its last offset delta is {last_delta}",
        )
    if attributes & CONTROL:
        raise Refusal(ErrorCode.INVALID_RECORD, "clients may not write control batches")
    if producer_id >= 0:
        if sequence < 0 or epoch < 0:
            raise Refusal(
                ErrorCode.INVALID_RECORD, f"a batch of producer {producer_id} has sequence {sequence} and epoch {epoch}"
            )
    elif attributes & TRANSACTIONAL:
        raise Refusal(ErrorCode.INVALID_RECORD, "a batch of a transaction names no producer")
    codec = attributes & COMPRESSION_MASK
    if codec > _LAST_CODEC:
        raise Refusal(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"compression codec {codec} does not exist")
    content_bytes = size - HEADER_BYTES
    needed_bytes = record_count * RECORD_BYTES_MIN
    if needed_bytes > content_bytes and needed_bytes > content_bytes * _UNFOLDED_BYTES_MAX[codec]:
        raise Refusal(
            ErrorCode.INVALID_RECORD, f"the batch counts {record_count} records, more than fit into its {size} bytes"
        )
    header = tuple.__new__(BatchHeader, fields)  # what _make does, without another call
    if last_ms < first_ms:
        from riverlog.records.validation import with_true_last_timestamp  # it reads records, and few batches need it

        return with_true_last_timestamp(batch, header, batch_bytes_max=batch_bytes_max)
    return header


_LAST_CODEC: Final = int(Compression.ZSTD)
_UNFOLDED_BYTES_MAX: Final = (1, 1_032, 64, 255, 32_768)
"""What a byte can unfold to, by codec: deflate's longest match takes two bits for 258 bytes, a zstd block of one
repeated byte four bytes for 128 KiB. A batch that counts more records than that is a lie, whatever it unfolds to."""
RECORD_BYTES_MIN: Final = 7
"""Length, attributes, timestamp and offset deltas, key and value length, header count: a byte each."""


def assign(batch: memoryview, base_offset: Offset, leader_epoch: LeaderEpoch) -> None:
    """Write offset and leader epoch into one whole batch, in place; the checksum does not cover them."""
    _ASSIGNED.pack_into(batch, 0, base_offset, len(batch) - LOG_OVERHEAD, leader_epoch)


def stamp(batch: memoryview, log_append_time_ms: int) -> None:
    """Stamp the whole batch with the broker's time, in place; this needs a new checksum."""
    (attributes,) = _ATTRIBUTES.unpack_from(batch, ATTRIBUTES_POSITION)
    _ATTRIBUTES.pack_into(batch, ATTRIBUTES_POSITION, attributes | LOG_APPEND_TIME)
    _OFFSET.pack_into(batch, MAX_TIMESTAMP_POSITION, log_append_time_ms)
    _CRC.pack_into(batch, CRC_POSITION, checksum(batch))


def set_producer(batch: memoryview, producer_id: ProducerId, producer_epoch: ProducerEpoch, base_sequence: int) -> None:
    """Set the producer and the first sequence of a finished batch, in place; this needs a new checksum."""
    _PRODUCER.pack_into(batch, _PRODUCER_POSITION, producer_id, producer_epoch, base_sequence)
    _CRC.pack_into(batch, CRC_POSITION, checksum(batch))


def headers(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Walk the whole batches of a buffer: position and header of each. Stops before an incomplete one."""
    end = len(buffer)
    position = 0
    while end - position >= HEADER_BYTES:
        header = read_header(buffer, position)
        if header.length < HEADER_BYTES - LOG_OVERHEAD or header.size > end - position:
            return
        yield position, header
        position += header.size
