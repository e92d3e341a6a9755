"""A classic group over raw lines: what its members send, one step at a time."""

from typing import Any

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from riverlog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from riverlog.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic
from riverlog.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.asking import Line

GROUP = "g"


async def prepared(line: Line, *topics: str) -> None:
    """Create topics and what coordinators need."""
    await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic(name, 2) for name in topics]))
    found = await line.ask(ApiKey.FIND_COORDINATOR, 6, FindCoordinatorRequest(coordinator_keys=[GROUP]))
    assert found.coordinators[0].error_code == ErrorCode.NONE


def join_request(group: str = GROUP, member_id: str = "", **more: Any) -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol("range", b"wish")]
    values = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 20_000, "protocol_type": "any"} | more
    return JoinGroupRequest(group_id=group, member_id=member_id, protocols=protocols, **values)


async def joined(line: Line, group: str = GROUP, **more: Any) -> Any:
    """Become the only member, and its leader."""
    told = await line.ask(ApiKey.JOIN_GROUP, 9, join_request(group, **more))
    if told.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        told = await line.ask(ApiKey.JOIN_GROUP, 9, join_request(group, told.member_id, **more))
    assert told.error_code == ErrorCode.NONE
    assert told.leader == told.member_id
    return told


async def in_a_group(line: Line, group: str = GROUP, **more: Any) -> Any:
    """Become the only member and take everything."""
    told = await joined(line, group, **more)
    request = sync_request(told, group, assignments=[SyncGroupRequestAssignment(told.member_id, b"part")])
    synced = await line.ask(ApiKey.SYNC_GROUP, 5, request)
    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"part")
    return told


def sync_request(told: Any, group: str = GROUP, **more: Any) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        generation_id=told.generation_id,
        member_id=told.member_id,
        protocol_type=told.protocol_type,
        protocol_name=told.protocol_name,
        **more,
    )


def commit_request(topic: str, offset: int, partition: int = 0, **more: Any) -> OffsetCommitRequest:
    part = OffsetCommitRequestPartition(partition, offset, 5, "note")
    return OffsetCommitRequest(
        **{"group_id": GROUP, "topics": [OffsetCommitRequestTopic(name=topic, partitions=[part])]} | more
    )


async def commit(line: Line, topic: str, offset: int, **more: Any) -> ErrorCode:
    """Commit from outside the group, or as the member that is given."""
    response = await line.ask(ApiKey.OFFSET_COMMIT, 9, commit_request(topic, offset, **more))
    return ErrorCode(response.topics[0].partitions[0].error_code)


async def committed(line: Line, topic: str, partition: int = 0) -> int:
    """Return the group's offset, -1 where there is none."""
    topics = [OffsetFetchRequestTopic(name=topic, partition_indexes=[partition])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GROUP, topics=topics)])
    (group,) = (await line.ask(ApiKey.OFFSET_FETCH, 9, request)).groups
    assert group.error_code == ErrorCode.NONE, ErrorCode(group.error_code)
    return int(group.topics[0].partitions[0].committed_offset)
