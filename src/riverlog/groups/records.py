"""The facts of `__consumer_offsets`: Kafka's own records, so that Kafka's tools can read the topic and a data folder of
Kafka's keeps its groups.

A fact is a key and what now holds for it, or None: nothing does any more. `RECORD_TYPES` says by which number a kind of
record stands in the topic and in which version it is written, that of Kafka 4.3; older ones are understood.
"""

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from riverlog.model.ids import NO_PRODUCER, NO_PRODUCER_EPOCH, ProducerEpoch, ProducerId
from riverlog.wire.types import array, binary, int32, int64, record, string, struct, uuid

_NEVER_FLEXIBLE: Final = 1 << 15


@record(flexible_since=_NEVER_FLEXIBLE)
class OffsetCommitKey:
    """A partition as one group reads it."""

    group: str = string()
    topic: str = string()
    partition: int = int32()


@record(flexible_since=4)
class OffsetCommitValue:
    """How far a group has read a partition."""

    offset: int = int64()
    leader_epoch: int = int32(since=3, default=-1)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64(since=1, until=1, default=-1)
    topic_id: UUID = uuid(since=4, tag=0)


@record(flexible_since=_NEVER_FLEXIBLE)
class GroupMetadataKey:
    """A classic group."""

    group: str = string()


@struct
class MemberMetadata:
    """A member of a classic group, with its metadata for the protocol that was chosen."""

    member_id: str = string()
    group_instance_id: str | None = string(since=3, nullable_since=3)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32(since=1, default=-1)
    session_timeout: int = int32()
    subscription: bytes = binary()
    assignment: bytes = binary()


@record(flexible_since=4)
class GroupMetadataValue:
    """A classic group in one of its generations: who is in it, and who has what."""

    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable_since=0)
    leader: str | None = string(nullable_since=0)
    current_state_timestamp: int = int64(since=2, default=-1)
    members: tuple[MemberMetadata, ...] = array(MemberMetadata, default_factory=tuple)


Key = OffsetCommitKey | GroupMetadataKey
Value = OffsetCommitValue | GroupMetadataValue


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """One fact. With a producer it holds once that producer's transaction is committed."""

    key: Key
    value: Value | None
    producer_id: ProducerId = NO_PRODUCER
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH


@dataclass(frozen=True, slots=True)
class TransactionMarker:
    """A producer's transaction has ended; in the topic this is a control batch, as in any partition."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    committed: bool


GroupFact = GroupRecord | TransactionMarker


@dataclass(frozen=True, slots=True)
class RecordType:
    """How a fact stands in the topic: the number of its kind, the version in which its value is written, and the
    latest that is understood."""

    number: int
    key: type[Any]
    value: type[Any]
    version: int
    latest: int


RECORD_TYPES: Final = (
    RecordType(0, OffsetCommitKey, OffsetCommitValue, 0, 0),  # as Kafka wrote it before 0.8.2; only read
    RecordType(1, OffsetCommitKey, OffsetCommitValue, 4, 4),
    RecordType(2, GroupMetadataKey, GroupMetadataValue, 3, 4),
)
