"""Snapshot files of the metadata log, in Kafka's form: a header and who votes, the metadata records, a footer.

The footer says that the file is whole. Header, voters and footer are control records, so that readers of metadata alone
pass over them.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from riverlog.metadata.encoding import decode_record, encode_record
from riverlog.metadata.records import MetadataRecord, TransactionRecord
from riverlog.model.ids import LeaderEpoch, NodeId, Offset
from riverlog.model.ports import Buffer
from riverlog.raft.control_records import (
    ControlRecord,
    KRaftVersionRecord,
    LeaderChangeRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    encode_batch,
    voter_set,
    voters_record,
)
from riverlog.raft.control_records import decode_record as decode_control
from riverlog.raft.log_tail import SnapshotId
from riverlog.raft.voters import RECONFIGURABLE, VoterSet
from riverlog.records.batch import headers
from riverlog.records.errors import CorruptBatch
from riverlog.records.record import BatchBuilder, read_batch, read_batches

SNAPSHOT_SUFFIX: Final = ".checkpoint"
RECORDS_PER_BATCH: Final = 10_000


class VotersSaid(NamedTuple):
    """What a control record says of voters, or of kraft.version, and at which offset."""

    offset: Offset
    voters: VoterSet | None = None
    kraft_version: int | None = None
    electorate: tuple[NodeId, ...] = ()
    """Who might vote when a leader was elected; other records leave it empty."""


class BadMetadata(Exception):
    """The metadata cannot be read whole. The node must not start: it would take topics for deleted."""

    def __init__(self, folder: str, reason: str) -> None:
        super().__init__(
            f"The cluster's metadata in {folder} is damaged: {reason.rstrip('.')}. Nothing was changed; put the folder "
            f"back from a copy and start again."
        )


def snapshot_name(snapshot: SnapshotId) -> str:
    """Name the file of a snapshot."""
    return f"{snapshot.end_offset:020}-{snapshot.epoch:010}{SNAPSHOT_SUFFIX}"


def snapshot_id(name: str) -> SnapshotId:
    """Parse the name of a snapshot: where the log goes on behind it, and the epoch of the record before."""
    folder, _, file_name = name.rpartition("/")
    stem = file_name.removesuffix(SNAPSHOT_SUFFIX)
    offset, _, epoch = stem.partition("-")
    if not (len(offset) == 20 and len(epoch) == 10 and (offset + epoch).isascii() and (offset + epoch).isdigit()):
        raise BadMetadata(folder or ".", f"{file_name} is not the name of a snapshot")
    return SnapshotId(Offset(int(offset)), LeaderEpoch(int(epoch)))


def encode_snapshot(
    records: Iterable[MetadataRecord], epoch: LeaderEpoch, timestamp_ms: int, *, voters: VoterSet, kraft_version: int
) -> bytes:
    """Write a whole snapshot file."""
    header = SnapshotHeaderRecord(last_contained_log_timestamp=timestamp_ms)
    begin: list[ControlRecord] = [header]
    if kraft_version >= RECONFIGURABLE:
        begin += [KRaftVersionRecord(k_raft_version=kraft_version), voters_record(voters)]
    out = bytearray(encode_batch(begin, base_offset=Offset(0), epoch=epoch, timestamp_ms=timestamp_ms))
    offset = Offset(len(begin))
    builder = BatchBuilder()
    for record in records:
        builder.append(None, encode_record(record), timestamp_ms=timestamp_ms)
        if builder.count == RECORDS_PER_BATCH:
            offset = _add(out, builder, offset, epoch)
            builder = BatchBuilder()
    if builder.count:
        offset = _add(out, builder, offset, epoch)
    out += encode_batch([SnapshotFooterRecord()], base_offset=offset, epoch=epoch, timestamp_ms=timestamp_ms)
    return bytes(out)


def decode_snapshot(content: bytes) -> Iterator[MetadataRecord | TransactionRecord]:
    """Read a whole snapshot file; CorruptBatch or BadControlRecord where it is not one."""
    control: list[ControlRecord] = []
    read = 0
    for header, records in read_batches(content):
        read += header.size
        if header.is_control:
            control += [decode_control(record) for record in records]
        else:
            yield from (decode_record(record.value or b"") for record in records)
    framed = bool(control) and isinstance(control[0], SnapshotHeaderRecord)
    if read != len(content) or not framed or not isinstance(control[-1], SnapshotFooterRecord):
        raise CorruptBatch("a snapshot does not have its beginning and its end")


def voters_said(content: Buffer) -> list[VotersSaid]:
    """Find what the control batches of a log or snapshot say of voters; the other batches are not looked into."""
    view, said = memoryview(content), list[VotersSaid]()
    for position, header in headers(view):
        if not header.is_control:
            continue
        for record in read_batch(view[position : position + header.size]):
            match decode_control(record):
                case VotersRecord() as found:
                    said.append(VotersSaid(record.offset, voters=voter_set(found)))
                case KRaftVersionRecord() as found:
                    said.append(VotersSaid(record.offset, kraft_version=found.k_raft_version))
                case LeaderChangeRecord() as found:
                    electorate = tuple(NodeId(each.voter_id) for each in found.voters)
                    said.append(VotersSaid(record.offset, electorate=electorate))
                case _:
                    pass
    return said


def _add(out: bytearray, builder: BatchBuilder, offset: Offset, epoch: LeaderEpoch) -> Offset:
    out += builder.build(base_offset=offset, leader_epoch=epoch)
    return Offset(offset + builder.count)
