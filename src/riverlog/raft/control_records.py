"""Control records of the metadata log and its snapshots, in Kafka's form: who leads, who votes, where a snapshot ends.

They stand in batches of their own; the key of each is its type, behind an int16 of 0. Bytes that are no control record
raise BadControlRecord, and nothing else.
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Any, Final
from uuid import UUID

from riverlog.model.endpoints import Endpoint
from riverlog.model.ids import LeaderEpoch, NodeId, Offset
from riverlog.raft.effects import AppendControl
from riverlog.raft.voters import ReplicaKey, Voter, VoterSet
from riverlog.records.record import BatchBuilder, Record
from riverlog.wire.codec import MalformedMessage, decode, encode
from riverlog.wire.types import NO_UUID, array, int16, int32, int64, nested, record, string, struct, uint16, uuid

_KEY: Final = Struct(">hh")  # version, type
_VERSION: Final = 0


class BadControlRecord(ValueError):
    """Bytes that are no control record of the metadata log, or one that this version of riverlog does not know."""


@struct
class VoterId:
    """A voter, by its node."""

    voter_id: int = int32()


@record(flexible_since=0)
class LeaderChangeRecord:
    """An epoch begins: who leads, who may vote, and who has voted for the leader."""

    version: int = int16()
    leader_id: int = int32()
    voters: tuple[VoterId, ...] = array(VoterId, default_factory=tuple)
    granting_voters: tuple[VoterId, ...] = array(VoterId, default_factory=tuple)


@record(flexible_since=0)
class SnapshotHeaderRecord:
    """A snapshot begins; with the time of the last record that it stands for."""

    version: int = int16()
    last_contained_log_timestamp: int = int64()


@record(flexible_since=0)
class SnapshotFooterRecord:
    """A snapshot is whole."""

    version: int = int16()


@record(flexible_since=0)
class KRaftVersionRecord:
    """The level of the feature kraft.version."""

    version: int = int16()
    k_raft_version: int = int16()


@struct
class VoterEndpoint:
    """Where a voter listens for controllers."""

    name: str = string()
    host: str = string()
    port: int = uint16()


@struct
class SupportedKRaftVersions:
    """The levels of kraft.version that a voter knows."""

    min_supported_version: int = int16()
    max_supported_version: int = int16()


@struct
class VoterEntry:
    """One voter, with the disk that its vote is on."""

    voter_id: int = int32()
    voter_directory_id: UUID = uuid()
    endpoints: tuple[VoterEndpoint, ...] = array(VoterEndpoint, default_factory=tuple)
    k_raft_version_feature: SupportedKRaftVersions = nested(SupportedKRaftVersions)


@record(flexible_since=0)
class VotersRecord:
    """Who votes from here on."""

    version: int = int16()
    voters: tuple[VoterEntry, ...] = array(VoterEntry, default_factory=tuple)


ControlRecord = LeaderChangeRecord | SnapshotHeaderRecord | SnapshotFooterRecord | KRaftVersionRecord | VotersRecord

_TYPES: Final[dict[int, type[Any]]] = {
    2: LeaderChangeRecord,
    3: SnapshotHeaderRecord,
    4: SnapshotFooterRecord,
    5: KRaftVersionRecord,
    6: VotersRecord,
}
_NUMBERS: Final = {declaration: number for number, declaration in _TYPES.items()}


def encode_batch(
    records: Iterable[ControlRecord], *, base_offset: Offset, epoch: LeaderEpoch, timestamp_ms: int
) -> bytearray:
    """Write control records as one batch."""
    builder = BatchBuilder(control=True)
    for each in records:
        key = _KEY.pack(_VERSION, _NUMBERS[type(each)])
        builder.append(key, encode(each, _VERSION), timestamp_ms=timestamp_ms)
    return builder.build(base_offset=base_offset, leader_epoch=epoch)


def decode_record(given: Record) -> ControlRecord:
    """Read one record of a control batch."""
    if given.key is None or len(given.key) < _KEY.size:
        raise BadControlRecord("a control record has no type")
    _version, number = _KEY.unpack_from(given.key)
    declaration = _TYPES.get(number)
    if declaration is None:
        raise BadControlRecord(f"type {number} is not a control record that this version of riverlog knows")
    try:
        decoded: ControlRecord
        decoded, end = decode(declaration, _VERSION, given.value or b"")
    except MalformedMessage as error:
        raise BadControlRecord(f"in a control record {error}") from None
    if end != len(given.value or b""):
        raise BadControlRecord("bytes stand behind a control record")
    return decoded


def records_of(effect: AppendControl) -> list[ControlRecord]:
    """Return what a leader is to write."""
    records = list[ControlRecord]()
    if effect.elected_by is not None:
        records.append(
            LeaderChangeRecord(
                leader_id=effect.leader_id,
                voters=_ids(effect.voters.ids),
                granting_voters=_ids(effect.elected_by),
            )
        )
    if effect.kraft_version is not None:
        records.append(KRaftVersionRecord(k_raft_version=effect.kraft_version))
    if effect.writes_voters:
        records.append(voters_record(effect.voters))
    return records


def voters_record(voters: VoterSet) -> VotersRecord:
    """Return the record that says who votes."""
    return VotersRecord(
        voters=tuple(
            VoterEntry(
                voter_id=voter.key.id,
                voter_directory_id=voter.key.directory_id or NO_UUID,
                endpoints=tuple(VoterEndpoint(*endpoint) for endpoint in voter.endpoints),
                k_raft_version_feature=SupportedKRaftVersions(*voter.kraft_versions),
            )
            for voter in voters
        )
    )


def voter_set(record: VotersRecord) -> VoterSet:
    """Return who votes by a record."""
    return VoterSet.of(
        Voter(
            ReplicaKey(
                NodeId(entry.voter_id), None if entry.voter_directory_id == NO_UUID else entry.voter_directory_id
            ),
            tuple(Endpoint(each.name, each.host, each.port) for each in entry.endpoints),
            (entry.k_raft_version_feature.min_supported_version, entry.k_raft_version_feature.max_supported_version),
        )
        for entry in record.voters
    )


def _ids(nodes: Sequence[NodeId]) -> tuple[VoterId, ...]:
    return tuple(VoterId(node) for node in nodes)
