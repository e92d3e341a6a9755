"""What consumers tell one another in the classic protocol: their subscriptions, and who is assigned what.

To a coordinator all that is opaque, and of other protocol types nothing is known. It reads which topics consumers
subscribe to, since offsets of those are not deleted and do not expire; and it reads and writes all of it where members
of one group speak different protocols.
"""

from typing import Final

from riverlog.groups.consumer.assignors.subscriber import Partitions
from riverlog.groups.topics import Topics
from riverlog.wire.codec import MalformedMessage, decode, encode_parts, joined
from riverlog.wire.consumer_protocol import Assignment, Subscription, TopicShare
from riverlog.wire.types import STRING, array, int16, record

CONSUMER_PROTOCOL_TYPE: Final = "consumer"

_NEVER_FLEXIBLE: Final = 1 << 15
_LATEST: Final = 3


@record(flexible_since=_NEVER_FLEXIBLE)
class SubscribedTopics:
    """The beginning of every version of a subscription."""

    version: int = int16()
    topics: tuple[str, ...] = array(STRING, default_factory=tuple)


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """Name the topics that a consumer subscribes to; None if the metadata cannot be read."""
    try:
        subscription, _ = decode(SubscribedTopics, 0, metadata)
    except MalformedMessage:
        return None
    return frozenset(subscription.topics)


def read_subscription(metadata: bytes) -> Subscription | None:
    """Read a subscription of any version; None if it cannot be read."""
    try:
        subscription, _ = decode(Subscription, _readable(_version(metadata)), metadata, 2)
    except MalformedMessage:
        return None
    return subscription


def read_assignment(assignment: bytes) -> Assignment | None:
    """Read an assignment of any version; a member without one has b"". None if it cannot be read."""
    if not assignment:
        return Assignment()
    try:
        assigned, _ = decode(Assignment, 0, assignment, 2)
    except MalformedMessage:
        return None
    return assigned


def must_give_up(metadata: bytes, assignment: bytes) -> bool:
    """Return whether a consumer has partitions that it is not assigned: it releases them and joins again (KIP-429)."""
    subscription, assigned = read_subscription(metadata), read_assignment(assignment)
    if subscription is None or assigned is None:
        return False
    return not _each(subscription.owned_partitions) <= _each(assigned.assigned_partitions)


def write_assignment(partitions: Partitions, topics: Topics, metadata: bytes) -> bytes:
    """Write an assignment in the version of the member's subscription; topics that are gone are left out."""
    version = _readable(_version(metadata))
    named = tuple(
        TopicShare(topic.name, tuple(sorted(partitions[topic.id])))
        for topic_id in sorted(partitions)
        if (topic := topics.topic_by_id(topic_id)) is not None
    )
    return joined(encode_parts(Assignment(named), version, bytearray(version.to_bytes(2, "big"))))


def by_id(named: tuple[TopicShare, ...], topics: Topics) -> Partitions:
    """Return partitions by the ids of their topics; topics that do not exist are left out."""
    return {
        topic.id: frozenset(each.partitions)
        for each in named
        if each.partitions and (topic := topics.topic(each.topic)) is not None
    }


def _each(named: tuple[TopicShare, ...]) -> set[tuple[str, int]]:
    return {(each.topic, partition) for each in named for partition in each.partitions}


def _version(data: bytes) -> int:
    return int.from_bytes(data[:2], "big", signed=True)


def _readable(version: int) -> int:
    """A newer version begins like the latest that is known; a negative one is nobody's."""
    return max(0, min(version, _LATEST))
