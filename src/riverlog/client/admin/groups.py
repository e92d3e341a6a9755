"""What an administrator does with groups: list and describe them, move and forget their offsets, delete them.

A part of Admin. Each group is asked of its own coordinator. Offsets can only be moved while a group has no members:
the members would go on where they are, and commit over it.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeVar

from riverlog.client.arguments import checked_partition, checked_text, checked_texts
from riverlog.client.consumer.assignors import from_shares
from riverlog.client.consumer.commits import (
    OUTSIDE,
    CommittedOffset,
    all_committed_offsets,
    checked_commit,
    commit_offsets,
)
from riverlog.client.errors import KafkaError, PartlyFailed, error_code, failure
from riverlog.client.network.cluster import Cluster
from riverlog.client.network.coordinator import MOVED, GroupCoordinator
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId, TopicPartition
from riverlog.wire.codec import MalformedMessage
from riverlog.wire.consumer_protocol import PROTOCOL_TYPE, Assignment, decode_told
from riverlog.wire.messages import consumer_group_describe as consumer_groups
from riverlog.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from riverlog.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from riverlog.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from riverlog.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)

T = TypeVar("T")

GroupKind = Literal["classic", "consumer"]


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group as the list of all groups shows it; what an old broker does not tell is empty."""

    name: str
    kind: str
    state: str
    protocol_type: str
    coordinator: NodeId


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member, and the partitions that it has."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group with its members."""

    name: str
    kind: GroupKind
    state: str
    assignor: str
    members: tuple[MemberDescription, ...]


class GroupAdmin:
    """The calls about groups."""

    _cluster: Cluster
    _until_done: Callable[[Callable[[], Awaitable[T]]], Awaitable[T]]

    async def list_groups(self, *, states: Iterable[str] = (), kinds: Iterable[str] = ()) -> list[GroupListing]:
        """List the groups of all coordinators, by name."""
        request = ListGroupsRequest(
            states_filter=checked_texts("a state", states), types_filter=checked_texts("a kind", kinds)
        )

        async def attempt() -> list[GroupListing]:
            found = []
            for node in sorted(self._cluster.brokers):
                response: ListGroupsResponse = await self._cluster.ask(node, request)
                if response.error_code != ErrorCode.NONE:
                    raise failure(response.error_code, "the list of groups")
                found += [
                    GroupListing(each.group_id, each.group_type, each.group_state, each.protocol_type, node)
                    for each in response.groups
                ]
            return sorted(found, key=lambda group: group.name)

        return await self._until_done(attempt)

    async def describe_group(self, name: str) -> GroupDescription:
        """Return a group with its members; raise KafkaError (GROUP_ID_NOT_FOUND) where there is none."""
        checked_text("a group's name", name)

        async def attempt() -> GroupDescription:
            coordinator = GroupCoordinator(self._cluster, name)
            newer = await _describe_newer(coordinator)
            return await _describe_classic(coordinator) if newer is None else newer

        return await self._until_done(attempt)

    async def group_offsets(self, name: str) -> dict[TopicPartition, CommittedOffset]:
        """Return all that a group has committed."""
        checked_text("a group's name", name)
        return await all_committed_offsets(self._cluster, GroupCoordinator(self._cluster, name))

    async def alter_group_offsets(self, name: str, offsets: Mapping[TopicPartition, int | CommittedOffset]) -> None:
        """Move the offsets of a group that has no members; CommitFailed where it has."""
        checked_text("a group's name", name)
        moved = {checked_partition(partition): checked_commit(at) for partition, at in offsets.items()}
        await commit_offsets(self._cluster, GroupCoordinator(self._cluster, name), OUTSIDE, moved)

    async def delete_group_offsets(self, name: str, partitions: Iterable[TopicPartition]) -> None:
        """Forget how far a group has come in partitions that no member subscribes to."""
        checked_text("a group's name", name)
        wanted = sorted(checked_partition(partition) for partition in partitions)
        request = OffsetDeleteRequest(
            group_id=name,
            topics=[
                OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=[OffsetDeleteRequestPartition(partition_index=each.partition) for each in group],
                )
                for topic, group in groupby(wanted, key=lambda partition: partition.topic)
            ],
        )

        async def attempt() -> None:
            coordinator = GroupCoordinator(self._cluster, name)
            response: OffsetDeleteResponse = await coordinator.ask(request)
            _check(response.error_code, name)
            failures = {
                f"{topic.name}-{entry.partition_index}": failure(
                    entry.error_code, f"the offset of {topic.name}-{entry.partition_index} in group {name!r}"
                )
                for topic in response.topics
                for entry in topic.partitions
                if entry.error_code != ErrorCode.NONE
            }
            if failures:
                raise PartlyFailed(failures, len(wanted)) if len(wanted) > 1 else next(iter(failures.values()))

        await self._until_done(attempt)

    async def delete_groups(self, names: str | Iterable[str]) -> None:
        """Delete groups that have no members, with their offsets."""
        wanted = checked_texts("a group's name", names)
        failures: dict[str, KafkaError] = {}
        for name in wanted:
            try:
                await self._delete_group(name)
            except KafkaError as problem:
                if problem.retriable:
                    raise
                failures[name] = problem
        if failures:
            raise PartlyFailed(failures, len(wanted)) if len(wanted) > 1 else failures[wanted[0]]

    async def _delete_group(self, name: str) -> None:
        async def attempt() -> None:
            request = DeleteGroupsRequest(groups_names=[name])
            response: DeleteGroupsResponse = await GroupCoordinator(self._cluster, name).ask(request)
            _check(response.results[0].error_code, name)

        await self._until_done(attempt)


async def _describe_newer(coordinator: GroupCoordinator) -> GroupDescription | None:
    """Describe a group of the newer kind; None where it is a classic one, or the broker knows no others."""
    request = consumer_groups.ConsumerGroupDescribeRequest(group_ids=[coordinator.group])
    try:
        response: consumer_groups.ConsumerGroupDescribeResponse = await coordinator.ask(request)
    except KafkaError as problem:
        if problem.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        return None
    group = response.groups[0]
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return None
    _check(group.error_code, coordinator.group, group.error_message)
    return GroupDescription(
        group.group_id,
        "consumer",
        group.group_state,
        group.assignor_name,
        tuple(
            MemberDescription(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host.removeprefix("/"),
                tuple(
                    TopicPartition(topic.topic_name, index)
                    for topic in member.assignment.topic_partitions
                    for index in topic.partitions
                ),
            )
            for member in group.members
        ),
    )


async def _describe_classic(coordinator: GroupCoordinator) -> GroupDescription:
    response: DescribeGroupsResponse = await coordinator.ask(DescribeGroupsRequest(groups=[coordinator.group]))
    group = response.groups[0]
    _check(group.error_code, coordinator.group, group.error_message)
    if group.group_state == "Dead":
        raise _not_found(coordinator.group)
    members = tuple(
        MemberDescription(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host.removeprefix("/"),
            _assigned(group, member.member_assignment),
        )
        for member in group.members
    )
    return GroupDescription(group.group_id, "classic", group.group_state, group.protocol_data, members)


def _assigned(group: DescribedGroup, assignment: bytes) -> tuple[TopicPartition, ...]:
    """Read what a consumer was given; what other kinds of members say to each other is their own."""
    if group.protocol_type != PROTOCOL_TYPE or not assignment:
        return ()
    try:
        return tuple(from_shares(decode_told(Assignment, assignment).assigned_partitions))
    except MalformedMessage:
        return ()


def _check(number: int, name: str, message: str | None = None) -> None:
    code = error_code(number)
    match code:
        case ErrorCode.NONE:
            return
        case ErrorCode.GROUP_ID_NOT_FOUND:
            raise _not_found(name)
        case ErrorCode.NON_EMPTY_GROUP:
            raise KafkaError(code, f"group {name!r} has members; stop them first")
        case _ if code in MOVED:
            raise failure(number, f"the coordinator of group {name!r}")
        case _:
            raise failure(number, f"group {name!r}", message)


def _not_found(name: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {name!r}")
