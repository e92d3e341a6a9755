"""Sharing partitions out among the members of a classic group: what the leader does for all of them.

`range` gives neighbouring partitions to one member and forgets what was before. `cooperative-sticky` moves as little as
it can, and takes its time: a partition that has to move is given to nobody until the member that has it has let go,
which is seen in the round after.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from riverlog.groups.consumer.assignors.range import assign_range
from riverlog.groups.consumer.assignors.subscriber import Assignor, Subscriber
from riverlog.groups.consumer.assignors.uniform import assign_uniform
from riverlog.model.ids import TopicPartition
from riverlog.wire.consumer_protocol import Subscription, TopicShare

COOPERATIVE_STICKY: Final = "cooperative-sticky"
RANGE: Final = "range"
ASSIGNORS: Final[dict[str, Assignor]] = {COOPERATIVE_STICKY: assign_uniform, RANGE: assign_range}


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member as its leader sees it."""

    member_id: str
    subscription: Subscription
    instance_id: str | None = None


def share_out(
    assignor: str, members: Iterable[GroupMember], partition_counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """Assign every partition of every topic that is there to one of the topic's subscribers."""
    members = list(members)
    ids = {name: UUID(int=number) for number, name in enumerate(sorted(partition_counts))}
    names = {topic_id: name for name, topic_id in ids.items()}
    owners = _owners(members)
    assigned = ASSIGNORS[assignor](
        [_subscriber(member, ids, owners) for member in members],
        {ids[name]: count for name, count in partition_counts.items()},
    )
    shares = {
        member_id: sorted(TopicPartition(names[topic], index) for topic, indexes in given.items() for index in indexes)
        for member_id, given in assigned.items()
    }
    if assignor == COOPERATIVE_STICKY:
        return {member_id: _free_for(member_id, share, owners) for member_id, share in shares.items()}
    return shares


def as_shares(partitions: Iterable[TopicPartition]) -> tuple[TopicShare, ...]:
    """Put partitions into the form in which members speak of them."""
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        by_topic.setdefault(topic, []).append(index)
    return tuple(TopicShare(topic=topic, partitions=tuple(indexes)) for topic, indexes in by_topic.items())


def from_shares(shares: Iterable[TopicShare]) -> list[TopicPartition]:
    """Read partitions from the form in which members speak of them."""
    return [TopicPartition(share.topic, index) for share in shares for index in share.partitions]


def _owners(members: list[GroupMember]) -> dict[TopicPartition, str]:
    """Find who has what. Of two who claim the same, the one of the younger generation is right; of equals neither."""
    owners: dict[TopicPartition, str] = {}
    since: dict[TopicPartition, int] = {}
    for member in members:
        generation = member.subscription.generation_id
        for partition in from_shares(member.subscription.owned_partitions):
            if generation > since.get(partition, -2):
                owners[partition] = member.member_id
                since[partition] = generation
            elif generation == since[partition]:
                owners.pop(partition, None)
    return owners


def _subscriber(member: GroupMember, ids: Mapping[str, UUID], owners: Mapping[TopicPartition, str]) -> Subscriber:
    owned: dict[UUID, set[int]] = {}
    for partition in from_shares(member.subscription.owned_partitions):
        if owners.get(partition) == member.member_id and partition.topic in ids:
            owned.setdefault(ids[partition.topic], set()).add(partition.partition)
    return Subscriber(
        member.member_id,
        frozenset(ids[topic] for topic in member.subscription.topics if topic in ids),
        {topic: frozenset(indexes) for topic, indexes in owned.items()},
        member.instance_id,
    )


def _free_for(
    member_id: str, share: list[TopicPartition], owners: Mapping[TopicPartition, str]
) -> list[TopicPartition]:
    return [partition for partition in share if owners.get(partition, member_id) == member_id]
