"""Control records of the metadata log: byte for byte as Kafka's, by an independent codec."""

from uuid import UUID

import pytest
from kio.schema.k_raft_version_record.v0.data import KRaftVersionRecord as KiosKRaftVersion
from kio.schema.leader_change_message.v0.data import LeaderChangeMessage
from kio.schema.leader_change_message.v0.data import Voter as KiosVoterId
from kio.schema.snapshot_footer_record.v0.data import SnapshotFooterRecord as KiosFooter
from kio.schema.snapshot_header_record.v0.data import SnapshotHeaderRecord as KiosHeader
from kio.schema.types import BrokerId
from kio.schema.voters_record.v0.data import Endpoint as KiosEndpoint
from kio.schema.voters_record.v0.data import KRaftVersionFeature
from kio.schema.voters_record.v0.data import Voter as KiosVoter
from kio.schema.voters_record.v0.data import VotersRecord as KiosVoters
from kio.static.primitive import i16, i32, i64, u16

from riverlog.model.ids import LeaderEpoch, NodeId, Offset
from riverlog.raft.control_records import (
    BadControlRecord,
    ControlRecord,
    KRaftVersionRecord,
    LeaderChangeRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VoterId,
    decode_record,
    encode_batch,
    records_of,
    voter_set,
    voters_record,
)
from riverlog.raft.effects import AppendControl
from riverlog.raft.voters import ReplicaKey, Voter, VoterSet
from riverlog.records.record import Record, read_batches
from tests.support.kio_oracle import kio_encode
from tests.support.raft import directory, endpoints, voters


def written(*records: ControlRecord) -> list[Record]:
    """Return the records of a batch as a reader of the log finds them."""
    batch = encode_batch(records, base_offset=Offset(40), epoch=LeaderEpoch(7), timestamp_ms=1000)
    [(header, found)] = read_batches(batch)
    assert (header.is_control, header.base_offset, header.leader_epoch) == (True, 40, 7)
    assert header.compression == 0
    return found


@pytest.mark.parametrize(
    ("ours", "number", "kios"),
    [
        (
            LeaderChangeRecord(leader_id=2, voters=(VoterId(1), VoterId(2)), granting_voters=(VoterId(2),)),
            2,
            LeaderChangeMessage(
                version=i16(0),
                leader_id=BrokerId(2),
                voters=(KiosVoterId(voter_id=i32(1)), KiosVoterId(voter_id=i32(2))),
                granting_voters=(KiosVoterId(voter_id=i32(2)),),
            ),
        ),
        (
            SnapshotHeaderRecord(last_contained_log_timestamp=99),
            3,
            KiosHeader(version=i16(0), last_contained_log_timestamp=i64(99)),
        ),
        (SnapshotFooterRecord(), 4, KiosFooter(version=i16(0))),
        (KRaftVersionRecord(k_raft_version=1), 5, KiosKRaftVersion(version=i16(0), k_raft_version=i16(1))),
        (
            voters_record(voters(1)),
            6,
            KiosVoters(
                version=i16(0),
                voters=(
                    KiosVoter(
                        voter_id=BrokerId(1),
                        voter_directory_id=directory(1),
                        endpoints=(KiosEndpoint(name="CONTROLLER", host="c1", port=u16(9093)),),
                        k_raft_version_feature=KRaftVersionFeature(
                            min_supported_version=i16(0), max_supported_version=i16(1)
                        ),
                    ),
                ),
            ),
        ),
    ],
)
def test_a_control_record_is_kafkas(ours: ControlRecord, number: int, kios: object) -> None:
    [found] = written(ours)
    assert found.key == bytes([0, 0, 0, number])
    assert found.value == kio_encode(kios)
    assert decode_record(found) == ours


def test_voters_are_read_as_they_were_written() -> None:
    mixed = VoterSet.of([*voters(1, 2), Voter(ReplicaKey(NodeId(3)), endpoints(3))])
    assert voter_set(voters_record(mixed)) == mixed
    assert voters_record(mixed).voters[2].voter_directory_id == UUID(int=0)


def test_an_epoch_begins_with_its_leader_and_perhaps_its_voters() -> None:
    effect = AppendControl(Offset(0), LeaderEpoch(1), (NodeId(1),), NodeId(1), voters(1), 1, True)
    assert [type(each).__name__ for each in records_of(effect)] == [
        "LeaderChangeRecord",
        "KRaftVersionRecord",
        "VotersRecord",
    ]
    changed = AppendControl(Offset(5), LeaderEpoch(1), None, NodeId(1), voters(1, 2), None, True)
    assert records_of(changed) == [voters_record(voters(1, 2))]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"\0\0", b""),
        (b"\0\0\0\x07", b"\0\0\0"),
        (b"\0\0\0\x00", b"\0\0\0"),
        (b"\0\0\0\x06", None),
        (b"\0\0\0\x06", b"\0\0\xff\xff\xff\xff\x0f"),
        (b"\0\0\0\x04", b"\0\0\0 and more"),
    ],
)
def test_other_bytes_are_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(BadControlRecord):
        decode_record(Record(Offset(0), 0, key, value))
