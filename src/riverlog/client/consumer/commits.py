"""A group's committed offsets: written down with the coordinator, and read back.

A commit is for the partitions that a member has: one whose group has moved on raises CommitFailed and changes nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple, TypeVar

from riverlog.client.arguments import checked_int32, checked_offset, checked_text
from riverlog.client.errors import CommitFailed, error_code, failure
from riverlog.client.network.cluster import Cluster
from riverlog.client.network.coordinator import MOVED, GroupCoordinator, asking_again
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_OFFSET, NO_TOPIC_ID, Offset, TopicPartition
from riverlog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from riverlog.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseTopic,
)

T = TypeVar("T")

_MOVED_ON: Final = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)


class CommittedOffset(NamedTuple):
    """The next offset that the group will read, with the leader epoch of the record before it and a note."""

    offset: Offset
    leader_epoch: int = -1
    metadata: str = ""

    @classmethod
    def at(cls, offset: int) -> "CommittedOffset":
        """Name an offset alone; TypeError or ValueError where it is none."""
        return cls(checked_offset(offset))


def checked_commit(at: object) -> CommittedOffset:
    """Return what is to be committed, an offset alone or with more; TypeError or ValueError where it cannot be."""
    if not isinstance(at, CommittedOffset):
        return CommittedOffset(checked_offset(at))
    checked_offset(at.offset)
    checked_int32("a leader epoch", at.leader_epoch, least=-1)
    checked_text("the note of an offset", at.metadata)
    return at


@dataclass(frozen=True, slots=True)
class Identity:
    """Who commits: a member in a generation (or at an epoch), or with the defaults somebody outside the group."""

    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


OUTSIDE: Final = Identity()


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """A group, and who commits for it: what a transaction needs to know. It may be sent to another process."""

    group: str
    identity: Identity = OUTSIDE


async def commit_offsets(
    cluster: Cluster,
    coordinator: GroupCoordinator,
    identity: Identity,
    offsets: Mapping[TopicPartition, CommittedOffset],
) -> None:
    """Commit all of these, or raise KafkaError; what may pass by itself is tried again for a while."""
    if not offsets:
        return
    for topic in {partition.topic for partition in offsets}:
        await cluster.topic(topic)
    await asking_again(cluster, lambda: _commit(cluster, coordinator, identity, offsets))


async def committed_offsets(
    cluster: Cluster,
    coordinator: GroupCoordinator,
    partitions: Iterable[TopicPartition],
    *,
    identity: Identity = OUTSIDE,
    require_stable: bool = False,
) -> dict[TopicPartition, CommittedOffset | None]:
    """Return what the group has committed, None where that is nothing."""
    wanted = sorted(partitions)
    if not wanted:
        return {}
    for topic in {partition.topic for partition in wanted}:
        await cluster.topic(topic)
    found = await asking_again(
        cluster, lambda: _fetch(cluster, coordinator, identity, wanted, require_stable=require_stable)
    )
    return {partition: found.get(partition) for partition in wanted}


async def all_committed_offsets(
    cluster: Cluster, coordinator: GroupCoordinator
) -> dict[TopicPartition, CommittedOffset]:
    """Return all that the group has committed."""
    cluster.watch_all()
    await cluster.refresh()
    return await asking_again(cluster, lambda: _fetch(cluster, coordinator, OUTSIDE, None, require_stable=False))


def by_topic(offsets: Mapping[TopicPartition, CommittedOffset], entry: Callable[..., T]) -> list[tuple[str, list[T]]]:
    """Return each topic with the entries of its partitions, as every request that commits offsets lists them."""
    return [
        (
            topic,
            [
                entry(
                    partition_index=partition.partition,
                    committed_offset=offsets[partition].offset,
                    committed_leader_epoch=offsets[partition].leader_epoch,
                    committed_metadata=offsets[partition].metadata,
                )
                for partition in partitions
            ],
        )
        for topic, partitions in groupby(sorted(offsets), key=lambda partition: partition.topic)
    ]


async def _commit(
    cluster: Cluster,
    coordinator: GroupCoordinator,
    identity: Identity,
    offsets: Mapping[TopicPartition, CommittedOffset],
) -> None:
    request = OffsetCommitRequest(
        group_id=coordinator.group,
        generation_id_or_member_epoch=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.instance_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=cluster.topics[topic].topic_id if topic in cluster.topics else NO_TOPIC_ID,
                partitions=partitions,
            )
            for topic, partitions in by_topic(offsets, OffsetCommitRequestPartition)
        ],
    )
    response: OffsetCommitResponse = await coordinator.ask(request)
    for topic in response.topics:
        for entry in topic.partitions:
            check_commit(coordinator, entry.error_code, "a commit")


async def _fetch(
    cluster: Cluster,
    coordinator: GroupCoordinator,
    identity: Identity,
    wanted: list[TopicPartition] | None,
    *,
    require_stable: bool,
) -> dict[TopicPartition, CommittedOffset]:
    topics = (
        None
        if wanted is None
        else [
            OffsetFetchRequestTopic(
                name=topic,
                topic_id=cluster.topics[topic].topic_id if topic in cluster.topics else NO_TOPIC_ID,
                partition_indexes=[partition.partition for partition in group],
            )
            for topic, group in groupby(wanted, key=lambda partition: partition.topic)
        ]
    )
    request = OffsetFetchRequest(
        group_id=coordinator.group,
        topics=topics,
        groups=[
            OffsetFetchRequestGroup(
                group_id=coordinator.group,
                member_id=identity.member_id or None,
                member_epoch=identity.generation,
                topics=topics,
            )
        ],
        require_stable=require_stable,
    )
    response: OffsetFetchResponse = await coordinator.ask(request)
    check_commit(coordinator, response.error_code, "committed offsets")
    answered: list[OffsetFetchResponseTopic] = list(response.topics)
    for group in response.groups:
        check_commit(coordinator, group.error_code, "committed offsets")
        answered += group.topics
    found: dict[TopicPartition, CommittedOffset] = {}
    for topic in answered:
        name = topic.name or cluster.topic_names.get(topic.topic_id, "")  # type: ignore[call-overload]
        for entry in topic.partitions:
            check_commit(coordinator, entry.error_code, f"the committed offset of {name}-{entry.partition_index}")
            if entry.committed_offset != NO_OFFSET:
                found[TopicPartition(name, entry.partition_index)] = CommittedOffset(
                    Offset(entry.committed_offset), entry.committed_leader_epoch, entry.metadata or ""
                )
    return found


def check_commit(coordinator: GroupCoordinator, number: int, what: str) -> None:
    """Raise what a code about a group's offsets means: CommitFailed where the group has gone on without the member."""
    code = error_code(number)
    if code is ErrorCode.NONE:
        return
    if code in MOVED:
        coordinator.moved()
    if code in _MOVED_ON:
        raise CommitFailed(coordinator.group, code)
    raise failure(number, f"{what} of group {coordinator.group!r}")
