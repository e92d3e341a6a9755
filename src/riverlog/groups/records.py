"""The facts of `__consumer_offsets`: Kafka's own records, so that Kafka's tools can read the topic and a data folder of
Kafka's keeps its groups.

A fact is a key and what now holds for it, or None: nothing does any more. `RECORD_TYPES` says by which number a kind of
record stands in the topic and in which version it is written, that of Kafka 4.3; older ones are understood.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from riverlog.model.ids import NO_PRODUCER, NO_PRODUCER_EPOCH, ProducerEpoch, ProducerId
from riverlog.wire.types import INT32, STRING, array, binary, int8, int32, int64, nested, record, string, struct, uuid

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


@record(flexible_since=_NEVER_FLEXIBLE)
class ConsumerGroupMetadataKey:
    """A consumer group (KIP-848)."""

    group_id: str = string()


@record(flexible_since=0)
class ConsumerGroupMetadataValue:
    """A consumer group exists; its epoch grows with whatever calls for another assignment."""

    epoch: int = int32()
    metadata_hash: int = int64(tag=0)
    """Stands for the topics as they were when the epoch began; which function makes it, only its writer knows."""


@record(flexible_since=_NEVER_FLEXIBLE)
class ConsumerGroupMemberMetadataKey:
    """A member of a consumer group, as it describes itself."""

    group_id: str = string()
    member_id: str = string()


@struct
class ClassicProtocol:
    """A way of assigning that a member which speaks the classic protocol offers."""

    name: str = string()
    metadata: bytes = binary()


@struct
class ClassicMemberMetadata:
    """What is known besides about a member of a consumer group that speaks the classic protocol."""

    session_timeout_ms: int = int32()
    supported_protocols: tuple[ClassicProtocol, ...] = array(ClassicProtocol, default_factory=tuple)


@record(flexible_since=0)
class ConsumerGroupMemberMetadataValue:
    """Who a member is, and what it wants to read."""

    instance_id: str | None = string(nullable_since=0)
    rack_id: str | None = string(nullable_since=0)
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: tuple[str, ...] = array(STRING, default_factory=tuple)
    subscribed_topic_regex: str | None = string(nullable_since=0)
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(nullable_since=0)
    classic_member_metadata: ClassicMemberMetadata | None = nested(ClassicMemberMetadata, nullable_since=0, tag=0)


@record(flexible_since=_NEVER_FLEXIBLE)
class ConsumerGroupTargetAssignmentMetadataKey:
    """What a consumer group is to come to."""

    group_id: str = string()


@record(flexible_since=0)
class ConsumerGroupTargetAssignmentMetadataValue:
    """The target that the members have been given belongs to this epoch of the group."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0)


@record(flexible_since=_NEVER_FLEXIBLE)
class ConsumerGroupTargetAssignmentMemberKey:
    """What a member is to have."""

    group_id: str = string()
    member_id: str = string()


@struct
class TargetTopicPartitions:
    """Partitions of a topic that a member is to have."""

    topic_id: UUID = uuid()
    partitions: tuple[int, ...] = array(INT32, default_factory=tuple)


@record(flexible_since=0)
class ConsumerGroupTargetAssignmentMemberValue:
    """All partitions that a member is to have."""

    topic_partitions: tuple[TargetTopicPartitions, ...] = array(TargetTopicPartitions, default_factory=tuple)


@record(flexible_since=_NEVER_FLEXIBLE)
class ConsumerGroupCurrentMemberAssignmentKey:
    """What a member has."""

    group_id: str = string()
    member_id: str = string()


@struct
class CurrentTopicPartitions:
    """Partitions of a topic that a member has, and the epoch since which it has each."""

    topic_id: UUID = uuid()
    partitions: tuple[int, ...] = array(INT32, default_factory=tuple)
    assignment_epochs: tuple[int, ...] | None = array(INT32, nullable_since=0, tag=0)


@record(flexible_since=0)
class ConsumerGroupCurrentMemberAssignmentValue:
    """How far a member has come on its way to its target."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: tuple[CurrentTopicPartitions, ...] = array(CurrentTopicPartitions, default_factory=tuple)
    partitions_pending_revocation: tuple[CurrentTopicPartitions, ...] = array(
        CurrentTopicPartitions, default_factory=tuple
    )


@record(flexible_since=_NEVER_FLEXIBLE)
class ConsumerGroupRegularExpressionKey:
    """A pattern that members of a consumer group subscribe to."""

    group_id: str = string()
    regular_expression: str = string()


@record(flexible_since=0)
class ConsumerGroupRegularExpressionValue:
    """The topics that a pattern matches."""

    topics: tuple[str, ...] = array(STRING, default_factory=tuple)
    version: int = int64()
    timestamp: int = int64()


ConsumerGroupKey = (
    ConsumerGroupMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)
ConsumerGroupValue = (
    ConsumerGroupMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
    | ConsumerGroupRegularExpressionValue
)

Key = OffsetCommitKey | GroupMetadataKey | ConsumerGroupKey
Value = OffsetCommitValue | GroupMetadataValue | ConsumerGroupValue


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
    coordinator_epoch: int = 0
    """Who said so."""


GroupFact = GroupRecord | TransactionMarker


def are_asked_again(facts: Iterable[GroupFact]) -> bool:
    """Return whether somebody asks again for what could not be written: only what is to be forgotten is said once."""
    return all(isinstance(fact, TransactionMarker) or fact.value is not None for fact in facts)


def groups_in(facts: Iterable[GroupFact]) -> dict[str, set[str]]:
    """Name the groups whose membership these facts change, and those of their members that speak for themselves."""
    groups: dict[str, set[str]] = {}
    for fact in facts:
        if isinstance(fact, TransactionMarker):
            continue
        match fact.key:
            case OffsetCommitKey():
                pass  # offsets are remembered alone
            case GroupMetadataKey(group_id):
                groups.setdefault(group_id, set())
            case (
                ConsumerGroupMemberMetadataKey(group_id, member_id)
                | ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)
                | ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id)
            ):
                groups.setdefault(group_id, set()).add(member_id)
            case _:
                groups.setdefault(fact.key.group_id, set())
    return groups


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
    RecordType(3, ConsumerGroupMetadataKey, ConsumerGroupMetadataValue, 0, 0),
    RecordType(5, ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue, 0, 0),
    RecordType(6, ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue, 0, 0),
    RecordType(7, ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue, 0, 0),
    RecordType(8, ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue, 0, 0),
    RecordType(16, ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue, 0, 0),
)
