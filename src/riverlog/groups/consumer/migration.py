"""From one protocol to the other while members are there: what a group was becomes what it is, member by member.

A classic group whose members are consumers becomes a consumer group when the first member joins that speaks the
consumer protocol, and a classic one again when the last of those leaves (`group.consumer.migration.policy`).
Nobody loses a partition by it.
"""

from typing import Final
from uuid import UUID

from riverlog.groups.classic.consumer_metadata import (
    CONSUMER_PROTOCOL_TYPE,
    by_id,
    read_assignment,
    read_subscription,
    write_assignment,
)
from riverlog.groups.classic.group import ClassicGroup, ClassicMember, ClassicPhase
from riverlog.groups.commands import MemberClient, Protocol
from riverlog.groups.consumer.assignors.subscriber import Partitions
from riverlog.groups.consumer.draft import Draft
from riverlog.groups.consumer.group import ConsumerGroup, ConsumerMember, target_record
from riverlog.groups.records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from riverlog.groups.topics import Topics, digest, found
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.settings import NodeSettings

FORGIVING_PROTOCOLS: Final = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})
"""Ways of assigning that need not find again what they noted with an assignment; librdkafka's leave notes."""


def may_upgrade(settings: NodeSettings) -> bool:
    return settings.group_consumer_migration_policy in ("bidirectional", "upgrade")


def may_downgrade(settings: NodeSettings) -> bool:
    return settings.group_consumer_migration_policy in ("bidirectional", "downgrade")


def check_upgrade(group: ClassicGroup, settings: NodeSettings) -> None:
    """Refuse to make a consumer group of one that cannot be."""
    if not may_upgrade(settings):
        raise _refused(group, "the setting group.consumer.migration.policy forbids it")
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise _refused(group, f"its members are of protocol type {group.protocol_type!r}")
    if len(group.members) > settings.group_consumer_max_size:
        raise _refused(group, f"it has more than {settings.group_consumer_max_size} members")


def upgraded(group: ClassicGroup, topics: Topics) -> Draft:
    """Write a classic group as a consumer group, in which all members speak the classic protocol."""
    draft = Draft(ConsumerGroup(group.id))
    taken: set[tuple[UUID, int]] = set()
    for classic in group.members.values():
        member, target = _upgraded(group, classic, topics, taken)
        draft.write(ConsumerGroupMemberMetadataKey(group.id, member.id), member.metadata)
        draft.write(ConsumerGroupTargetAssignmentMemberKey(group.id, member.id), target_record(target))
        draft.write(ConsumerGroupCurrentMemberAssignmentKey(group.id, member.id), member.record())
    seen = digest(found(topics, draft.group.subscribed_topics()))
    draft.write(ConsumerGroupMetadataKey(group.id), ConsumerGroupMetadataValue(group.generation, seen))
    draft.write(
        ConsumerGroupTargetAssignmentMetadataKey(group.id),
        ConsumerGroupTargetAssignmentMetadataValue(group.generation),
    )
    return draft


def downgraded(group: ConsumerGroup, topics: Topics, now_ms: int) -> ClassicGroup:
    """Make a classic group of a consumer group in which all members speak the classic protocol."""
    classic = ClassicGroup(
        group.id,
        since_ms=now_ms,
        generation=group.epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        phase=ClassicPhase.STABLE,
    )
    for member in group.members.values():
        classic.add(_downgraded(member, topics))
    classic.protocol_name = classic.chosen_protocol()
    classic.subscribed = classic.read_subscriptions()
    return classic


def _upgraded(
    group: ClassicGroup, classic: ClassicMember, topics: Topics, taken: set[tuple[UUID, int]]
) -> tuple[ConsumerMember, Partitions]:
    subscription = read_subscription(classic.metadata(group.protocol_name) or classic.protocols[0].metadata)
    assigned = read_assignment(classic.assignment)
    if subscription is None or assigned is None:
        raise _refused(group, f"what member {classic.id!r} says about itself cannot be read")
    if assigned.user_data and group.protocol_name not in FORGIVING_PROTOCOLS:
        raise _refused(group, "its assignor keeps data of its own with each assignment, which would be lost")
    # While a new assignment is awaited members have what they said to have when they joined.
    has = by_id(assigned.assigned_partitions or subscription.owned_partitions, topics)
    owned: dict[UUID, dict[int, int]] = {}
    for topic, indexes in has.items():
        for index in sorted(indexes):
            if (topic, index) not in taken:  # members may contradict each other; one of them is right
                taken.add((topic, index))
                owned.setdefault(topic, {})[index] = group.generation
    metadata = ConsumerGroupMemberMetadataValue(
        instance_id=classic.instance_id,
        rack_id=subscription.rack_id or None,
        client_id=classic.client.id,
        client_host=classic.client.host,
        subscribed_topic_names=tuple(sorted(set(subscription.topics))),
        rebalance_timeout_ms=classic.rebalance_timeout_ms,
        classic_member_metadata=classic_metadata(classic.session_timeout_ms, classic.protocols),
    )
    member = ConsumerMember(classic.id, metadata, group.generation, group.generation, assigned=owned)
    return member, {topic: frozenset(epochs) for topic, epochs in owned.items()}


def _downgraded(member: ConsumerMember, topics: Topics) -> ClassicMember:
    metadata, classic = member.metadata, member.metadata.classic_member_metadata
    assert classic is not None
    protocols = tuple(Protocol(each.name, each.metadata) for each in classic.supported_protocols)
    has = {topic: frozenset(epochs) for topic, epochs in member.assigned.items()}
    return ClassicMember(
        member.id,
        metadata.instance_id,
        MemberClient(metadata.client_id, metadata.client_host),
        classic.session_timeout_ms,
        metadata.rebalance_timeout_ms,
        protocols,
        write_assignment(has, topics, protocols[0].metadata),
    )


def classic_metadata(session_timeout_ms: int, protocols: tuple[Protocol, ...]) -> ClassicMemberMetadata:
    """Return what is to be remembered of a member that speaks the classic protocol."""
    return ClassicMemberMetadata(
        session_timeout_ms, tuple(ClassicProtocol(each.name, each.metadata) for each in protocols)
    )


def _refused(group: ClassicGroup, reason: str) -> Refusal:
    return Refusal(
        ErrorCode.GROUP_ID_NOT_FOUND, f"Classic group {group.id!r} cannot become a consumer group: {reason}."
    )
