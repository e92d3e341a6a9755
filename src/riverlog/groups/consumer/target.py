"""What a consumer group is to come to: who of its members is to read which partition."""

from collections import Counter
from typing import Final
from uuid import UUID

from riverlog.groups.consumer.assignors.range import assign_range
from riverlog.groups.consumer.assignors.subscriber import Assignor, Partitions, Subscriber
from riverlog.groups.consumer.assignors.uniform import assign_uniform
from riverlog.groups.consumer.group import ConsumerGroup
from riverlog.groups.topics import Topics, found

ASSIGNORS: Final[dict[str, Assignor]] = {"uniform": assign_uniform, "range": assign_range}


def preferred_assignor(group: ConsumerGroup, default: str) -> str:
    """Name the assignor that most members ask for, among equals the first by name."""
    asked = Counter(member.metadata.server_assignor for member in group.members.values())
    del asked[None]
    return min(asked, key=lambda name: (-asked[name], name or "")) or default if asked else default


def new_target(group: ConsumerGroup, topics: Topics, assignor: str) -> dict[str, Partitions]:
    """Assign all partitions of all topics that members subscribe to and that exist."""
    ids_by_subscription: dict[tuple[tuple[str, ...], str | None], frozenset[UUID]] = {}
    partition_counts: dict[UUID, int] = {}
    subscribers: list[Subscriber] = []
    for member in group.members.values():
        metadata = member.metadata
        subscription = metadata.subscribed_topic_names, metadata.subscribed_topic_regex
        ids = ids_by_subscription.get(subscription)
        if ids is None:
            existing = found(topics, group.topics_of(metadata))
            partition_counts.update((topic.id, topic.partition_count) for topic in existing)
            ids = ids_by_subscription[subscription] = frozenset(topic.id for topic in existing)
        subscribers.append(Subscriber(member.id, ids, group.target_of(member.id), metadata.instance_id))
    return ASSIGNORS[assignor](subscribers, partition_counts)
