"""The batches of a Fetch response, with what their control records say of voters."""

from riverlog.model.ids import Offset
from riverlog.model.ports import Buffer
from riverlog.raft.control_records import KRaftVersionRecord, VotersRecord, decode_record, voter_set
from riverlog.raft.messages import FetchedBatch, FetchedBatches
from riverlog.raft.voters import VoterSet
from riverlog.records.batch import BatchHeader, headers
from riverlog.records.record import check_batch, read_batch


def fetched_batches(content: Buffer) -> FetchedBatches:
    """Check the whole batches of fetched bytes; CorruptBatch or BadControlRecord where one is not what it must be.

    A batch that has come in part is left out, as by every reader of a log.
    """
    view = memoryview(content)
    batches, end = list[FetchedBatch](), 0
    for position, header in headers(view):
        end = position + header.size
        batches.append(fetched_batch(header, view[position:end]))
    return FetchedBatches(tuple(batches), view[:end])


def fetched_batch(header: BatchHeader, batch: Buffer) -> FetchedBatch:
    """Return what Raft is to know of one batch, whose checksum is checked."""
    voters, versions = list[tuple[Offset, VoterSet]](), list[tuple[Offset, int]]()
    if header.is_control:
        for record in read_batch(batch):
            found = decode_record(record)
            if isinstance(found, VotersRecord):
                voters.append((record.offset, voter_set(found)))
            elif isinstance(found, KRaftVersionRecord):
                versions.append((record.offset, found.k_raft_version))
    else:
        check_batch(batch)
    count = header.next_offset - header.base_offset
    return FetchedBatch(header.base_offset, count, header.leader_epoch, tuple(voters), tuple(versions))
