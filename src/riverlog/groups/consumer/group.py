"""A consumer group (KIP-848) as its records tell it.

    group epoch:   grows with every reason to assign anew
    target epoch:  the group epoch that the target was made for
    member epoch:  the target epoch that a member has come to

A member is always on its way from what it has to its target, on its own: no member waits for all the others. A
partition has at most one owner at any time; whoever is to have it next waits until its owner has let go. `apply` is the
only place where a group changes, and it takes records in any order that compaction may leave them in.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import Final, assert_never
from uuid import UUID

from riverlog.groups.consumer.assignors.subscriber import NO_PARTITIONS, Partitions
from riverlog.groups.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerGroupValue,
    CurrentTopicPartitions,
    GroupRecord,
    TargetTopicPartitions,
)

Owned = Mapping[UUID, Mapping[int, int]]
"""Partitions by topic, each with the epoch since which its owner has it; a topic that is named has at least one."""

NOTHING_OWNED: Final[Owned] = {}

JOINING: Final = 0
"""The epoch with which a member joins."""

LEFT: Final = -1
"""The epoch with which a member leaves."""

LEFT_FOR_A_WHILE: Final = -2
"""The epoch with which a static member leaves that means to come back: its partitions are kept for it."""


class ConsumerPhase(StrEnum):
    """Where a consumer group stands, in Kafka's words."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerMemberState(IntEnum):
    """Where a member stands on the way to its target, with Kafka's codes."""

    STABLE = 0
    UNREVOKED = 1
    """It has been asked to give partitions up, and has not said yet that it did."""
    UNRELEASED = 2
    """It waits for partitions that others have not given up yet."""
    UNKNOWN = 127
    """Written by a Kafka that knows more states."""

    @classmethod
    def _missing_(cls, value: object) -> "ConsumerMemberState":
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """A member: what it says of itself, and what it has."""

    id: str
    metadata: ConsumerGroupMemberMetadataValue = ConsumerGroupMemberMetadataValue()  # noqa: RUF009 - it is frozen
    epoch: int = JOINING
    previous_epoch: int = JOINING
    state: ConsumerMemberState = ConsumerMemberState.STABLE
    assigned: Owned = field(default_factory=dict)
    revoking: Owned = field(default_factory=dict)
    """What it has been asked to give up."""

    @property
    def is_classic(self) -> bool:
        """Return whether the member speaks the classic protocol."""
        return self.metadata.classic_member_metadata is not None

    def has_reached(self, target_epoch: int) -> bool:
        return self.state is ConsumerMemberState.STABLE and self.epoch == target_epoch

    def owns_since(self, topic_id: UUID, partition: int) -> int | None:
        """Return the epoch since which the member has a partition; None if it has not."""
        for owned in (self.assigned, self.revoking):
            if partition in owned.get(topic_id, ()):
                return owned[topic_id][partition]
        return None

    def record(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        """Return what is to be remembered of where the member stands."""
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=_written(self.assigned),
            partitions_pending_revocation=_written(self.revoking),
        )


@dataclass(slots=True)
class ConsumerGroup:
    """A group; whoever needs to look ahead changes a copy."""

    id: str
    epoch: int = 0
    metadata_hash: int = 0
    target_epoch: int = 0
    target_made_ms: int = 0
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    target: dict[str, Partitions] = field(default_factory=dict)
    patterns: dict[str, ConsumerGroupRegularExpressionValue] = field(default_factory=dict)
    static_ids: dict[str, str] = field(default_factory=dict)
    """Member ids by instance ids; follows from `members`."""
    owners: dict[tuple[UUID, int], str] = field(default_factory=dict)
    """Who has each partition, and be it still to be given up; follows from `members`."""
    behind: set[str] = field(default_factory=set)
    """Members that have not reached their target; follows from `members`."""

    def copy(self) -> "ConsumerGroup":
        """Return a group that can be changed alone."""
        return replace(
            self,
            members=dict(self.members),
            target=dict(self.target),
            patterns=dict(self.patterns),
            static_ids=dict(self.static_ids),
            owners=dict(self.owners),
            behind=set(self.behind),
        )

    @property
    def phase(self) -> ConsumerPhase:
        if not self.members:
            return ConsumerPhase.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerPhase.ASSIGNING
        return ConsumerPhase.RECONCILING if self.behind else ConsumerPhase.STABLE

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """Return the member of a static instance, if it has one."""
        return None if instance_id is None else self.members.get(self.static_ids.get(instance_id, ""))

    def target_of(self, member_id: str) -> Partitions:
        return self.target.get(member_id, NO_PARTITIONS)

    def topics_of(self, metadata: ConsumerGroupMemberMetadataValue) -> frozenset[str]:
        """Name the topics that a member subscribes to, also by pattern."""
        pattern = self.patterns.get(metadata.subscribed_topic_regex or "")
        matched = () if pattern is None else pattern.topics
        return frozenset((*metadata.subscribed_topic_names, *matched))

    def subscribed_topics(self) -> frozenset[str]:
        """Name the topics that any member subscribes to."""
        named = (name for member in self.members.values() for name in member.metadata.subscribed_topic_names)
        return frozenset(named).union(*(pattern.topics for pattern in self.patterns.values()))

    def reads(self, topic: str) -> bool:
        """Return whether a member subscribes to the topic."""
        return topic in self.subscribed_topics()

    def apply(self, key: ConsumerGroupKey, value: ConsumerGroupValue | None) -> None:
        """Remember one fact."""
        match key:
            case ConsumerGroupMetadataKey():
                assert value is None or isinstance(value, ConsumerGroupMetadataValue)
                value = value or ConsumerGroupMetadataValue()
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case ConsumerGroupMemberMetadataKey():
                assert value is None or isinstance(value, ConsumerGroupMemberMetadataValue)
                self._apply_metadata(key.member_id, value)
            case ConsumerGroupTargetAssignmentMetadataKey():
                assert value is None or isinstance(value, ConsumerGroupTargetAssignmentMetadataValue)
                value = value or ConsumerGroupTargetAssignmentMetadataValue()
                self.target_epoch, self.target_made_ms = value.assignment_epoch, value.assignment_timestamp
                self.behind = {each.id for each in self.members.values() if not each.has_reached(self.target_epoch)}
            case ConsumerGroupTargetAssignmentMemberKey():
                assert value is None or isinstance(value, ConsumerGroupTargetAssignmentMemberValue)
                if value is None:
                    self.target.pop(key.member_id, None)
                else:
                    self.target[key.member_id] = {
                        each.topic_id: frozenset(each.partitions) for each in value.topic_partitions if each.partitions
                    }
            case ConsumerGroupCurrentMemberAssignmentKey():
                assert value is None or isinstance(value, ConsumerGroupCurrentMemberAssignmentValue)
                self._apply_current(key.member_id, value)
            case ConsumerGroupRegularExpressionKey():
                assert value is None or isinstance(value, ConsumerGroupRegularExpressionValue)
                if value is None:
                    self.patterns.pop(key.regular_expression, None)
                else:
                    self.patterns[key.regular_expression] = value
            case _:
                assert_never(key)

    def records(self) -> Iterator[GroupRecord]:
        """Return records which make an empty group equal to this one."""
        for member_id, member in self.members.items():
            yield GroupRecord(ConsumerGroupMemberMetadataKey(self.id, member_id), member.metadata)
        for pattern, value in self.patterns.items():
            yield GroupRecord(ConsumerGroupRegularExpressionKey(self.id, pattern), value)
        yield GroupRecord(ConsumerGroupMetadataKey(self.id), ConsumerGroupMetadataValue(self.epoch, self.metadata_hash))
        for member_id, partitions in self.target.items():
            yield GroupRecord(ConsumerGroupTargetAssignmentMemberKey(self.id, member_id), target_record(partitions))
        yield GroupRecord(
            ConsumerGroupTargetAssignmentMetadataKey(self.id),
            ConsumerGroupTargetAssignmentMetadataValue(self.target_epoch, self.target_made_ms),
        )
        for member_id, member in self.members.items():
            yield GroupRecord(ConsumerGroupCurrentMemberAssignmentKey(self.id, member_id), member.record())

    def tombstones(self) -> Iterator[ConsumerGroupKey]:
        """Name all keys of the group, in the order in which Kafka can forget them."""
        for member_id in self.members:
            yield ConsumerGroupCurrentMemberAssignmentKey(self.id, member_id)
        for member_id in self.target:
            yield ConsumerGroupTargetAssignmentMemberKey(self.id, member_id)
        yield ConsumerGroupTargetAssignmentMetadataKey(self.id)
        for member_id in self.members:
            yield ConsumerGroupMemberMetadataKey(self.id, member_id)
        for pattern in self.patterns:
            yield ConsumerGroupRegularExpressionKey(self.id, pattern)
        yield ConsumerGroupMetadataKey(self.id)

    def _apply_metadata(self, member_id: str, value: ConsumerGroupMemberMetadataValue | None) -> None:
        old = self.members.get(member_id)
        if old is not None and self.static_ids.get(old.metadata.instance_id or "") == member_id:
            del self.static_ids[old.metadata.instance_id or ""]
        if value is not None:
            self._keep(replace(old or ConsumerMember(member_id), metadata=value))
            if value.instance_id is not None:
                self.static_ids[value.instance_id] = member_id
        elif old is not None:
            self._disown(old)
            self.behind.discard(member_id)
            del self.members[member_id]

    def _apply_current(self, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None) -> None:
        old = self.members.get(member_id)
        if old is not None:
            self._disown(old)
        if value is None:
            if old is not None:
                self._keep(ConsumerMember(member_id, old.metadata, LEFT, LEFT))
            return
        member = ConsumerMember(
            member_id,
            ConsumerMember(member_id).metadata if old is None else old.metadata,
            value.member_epoch,
            value.previous_member_epoch,
            ConsumerMemberState(value.state),
            _read(value.assigned_partitions, value.member_epoch),
            _read(value.partitions_pending_revocation, value.member_epoch),
        )
        self._keep(member)
        for owned in (member.assigned, member.revoking):
            self.owners.update(((topic_id, index), member_id) for topic_id in owned for index in owned[topic_id])

    def _keep(self, member: ConsumerMember) -> None:
        self.members[member.id] = member
        if member.has_reached(self.target_epoch):
            self.behind.discard(member.id)
        else:
            self.behind.add(member.id)

    def _disown(self, member: ConsumerMember) -> None:
        for owned in (member.assigned, member.revoking):
            for topic_id, partitions in owned.items():
                for index in partitions:
                    # While a compacted topic is replayed, another may already have what this one gave up later.
                    if self.owners.get((topic_id, index)) == member.id:
                        del self.owners[topic_id, index]


def target_record(partitions: Partitions) -> ConsumerGroupTargetAssignmentMemberValue:
    """Return what is to be remembered of a member's target."""
    return ConsumerGroupTargetAssignmentMemberValue(
        tuple(TargetTopicPartitions(topic_id, tuple(sorted(found))) for topic_id, found in sorted(partitions.items()))
    )


def _written(owned: Owned) -> tuple[CurrentTopicPartitions, ...]:
    return tuple(
        CurrentTopicPartitions(topic_id, tuple(sorted(epochs)), tuple(epochs[index] for index in sorted(epochs)))
        for topic_id, epochs in sorted(owned.items())
    )


def _read(written: tuple[CurrentTopicPartitions, ...], member_epoch: int) -> Owned:
    """Read what a member has; before Kafka 4.2 nothing was said about epochs, and the member's own is safe."""
    return {
        each.topic_id: dict(
            zip(each.partitions, each.assignment_epochs or (member_epoch,) * len(each.partitions), strict=True)
        )
        for each in written
        if each.partitions
    }
