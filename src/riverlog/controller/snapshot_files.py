"""Snapshot files of the metadata log, in Kafka's form: a header record, the metadata records, a footer record.

The footer says that the file is whole. Header and footer are control records, so that readers of metadata alone pass
over them.
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final

from riverlog.metadata.encoding import decode_record, encode_record
from riverlog.metadata.records import MetadataRecord, TransactionRecord
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.records.errors import CorruptBatch
from riverlog.records.record import BatchBuilder, Record, read_batches

SNAPSHOT_SUFFIX: Final = ".checkpoint"
RECORDS_PER_BATCH: Final = 10_000

_HEADER_TYPE: Final = 3
_FOOTER_TYPE: Final = 4
_CONTROL_KEY: Final = Struct(">hh")  # version, type
_HEADER: Final = Struct(">hqB")  # version, timestamp of the last record contained, no tagged fields
_FOOTER: Final = Struct(">hB")  # version, no tagged fields


class BadMetadata(Exception):
    """The metadata cannot be read whole. The node must not start: it would take topics for deleted."""

    def __init__(self, folder: str, reason: str) -> None:
        super().__init__(
            f"The cluster's metadata in {folder} is damaged: {reason.rstrip('.')}. Nothing was changed; put the folder "
            f"back from a copy and start again."
        )


def snapshot_name(end_offset: Offset, epoch: LeaderEpoch) -> str:
    """Name the snapshot of all records below an offset."""
    return f"{end_offset:020}-{epoch:010}{SNAPSHOT_SUFFIX}"


def snapshot_offset(name: str) -> Offset:
    """Parse the offset at which the log goes on behind a snapshot."""
    folder, _, file_name = name.rpartition("/")
    stem = file_name.removesuffix(SNAPSHOT_SUFFIX)
    offset, _, epoch = stem.partition("-")
    if not (len(offset) == 20 and len(epoch) == 10 and (offset + epoch).isascii() and (offset + epoch).isdigit()):
        raise BadMetadata(folder or ".", f"{file_name} is not the name of a snapshot")
    return Offset(int(offset))


def encode_snapshot(records: Iterable[MetadataRecord], epoch: LeaderEpoch, timestamp_ms: int) -> bytes:
    """Write a whole snapshot file."""
    out = bytearray()
    offset = _add_control(out, 0, epoch, timestamp_ms, _HEADER_TYPE, _HEADER.pack(0, timestamp_ms, 0))
    builder = BatchBuilder()
    for record in records:
        builder.append(None, encode_record(record), timestamp_ms=timestamp_ms)
        if builder.count == RECORDS_PER_BATCH:
            offset = _add(out, builder, offset, epoch)
            builder = BatchBuilder()
    if builder.count:
        offset = _add(out, builder, offset, epoch)
    _add_control(out, offset, epoch, timestamp_ms, _FOOTER_TYPE, _FOOTER.pack(0, 0))
    return bytes(out)


def decode_snapshot(content: bytes) -> Iterator[MetadataRecord | TransactionRecord]:
    """Read a whole snapshot file; CorruptBatch where it is not one."""
    control: list[int] = []
    read = 0
    for header, records in read_batches(content):
        read += header.size
        if header.is_control:
            control += [_control_type(record) for record in records]
        else:
            yield from (decode_record(record.value or b"") for record in records)
    if read != len(content) or control[:1] != [_HEADER_TYPE] or control[-1:] != [_FOOTER_TYPE]:
        raise CorruptBatch("a snapshot does not have its beginning and its end")


def _add(out: bytearray, builder: BatchBuilder, offset: int, epoch: LeaderEpoch) -> int:
    out += builder.build(base_offset=Offset(offset), leader_epoch=epoch)
    return offset + builder.count


def _add_control(out: bytearray, offset: int, epoch: LeaderEpoch, timestamp_ms: int, type_: int, value: bytes) -> int:
    builder = BatchBuilder(control=True)
    builder.append(_CONTROL_KEY.pack(0, type_), value, timestamp_ms=timestamp_ms)
    return _add(out, builder, offset, epoch)


def _control_type(record: Record) -> int:
    if record.key is None or len(record.key) != _CONTROL_KEY.size:
        raise CorruptBatch("a control record has no type")
    return int(_CONTROL_KEY.unpack(record.key)[1])
