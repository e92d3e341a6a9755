"""ConsumerGroupHeartbeat: a member of a consumer group, from joining to leaving."""

import asyncio
from typing import Any

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from riverlog.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tests.support.asking import Line, serving
from tests.support.denial import deny
from tests.support.group_lines import GROUP, commit, committed, prepared


async def beat(line: Line, member_id: str, epoch: int, version: int = 1, **more: Any) -> Any:
    request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member_id, member_epoch=epoch, **more)
    return await line.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, request)


async def joined(line: Line, member_id: str = "m", version: int = 1, topic: str = "t") -> Any:
    return await beat(
        line,
        member_id,
        0,
        version,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )


@pytest.mark.parametrize("version", [0, 1])
async def test_a_member_joins_stays_commits_and_leaves(version: int) -> None:
    async with serving() as (line, node):
        await prepared(line, "t")
        topic = node.parts.metadata.image.topic("t")
        assert topic is not None
        told = await joined(line, "" if version == 0 else "m", version)
        assert told.error_code == ErrorCode.NONE
        member_id = told.member_id
        assert member_id == "m" or version == 0
        (assigned,) = told.assignment.topic_partitions
        assert (assigned.topic_id, assigned.partitions) == (topic.id, [0, 1])
        owned = [TopicPartitions(topic.id, [0, 1])]
        stays = await beat(line, member_id, told.member_epoch, version, topic_partitions=owned)
        assert (stays.error_code, stays.assignment) == (ErrorCode.NONE, None)
        member = {"member_id": member_id, "generation_id_or_member_epoch": stays.member_epoch}
        assert await commit(line, "t", 4, **member) is ErrorCode.NONE
        member["generation_id_or_member_epoch"] -= 1
        assert await commit(line, "t", 5, **member) is ErrorCode.STALE_MEMBER_EPOCH
        assert await committed(line, "t") == 4
        assert (await beat(line, member_id, -1, version)).error_code == ErrorCode.NONE
        gone = await beat(line, member_id, stays.member_epoch, version)
        assert gone.error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_new_partitions_reach_the_members() -> None:
    async with serving() as (line, node):
        await prepared(line, "t")
        topic = node.parts.metadata.image.topic("t")
        assert topic is not None
        told = await joined(line)
        owned = [TopicPartitions(topic.id, [0, 1])]
        await beat(line, "m", told.member_epoch, topic_partitions=owned)
        more = CreatePartitionsRequest([CreatePartitionsTopic("t", 3)])
        await line.ask(ApiKey.CREATE_PARTITIONS, 3, more)
        await asyncio.sleep(2)  # a group rests between two assignments
        told = await beat(line, "m", told.member_epoch)
        (assigned,) = told.assignment.topic_partitions
        assert assigned.partitions == [0, 1, 2]


async def test_a_topic_that_comes_later_is_assigned() -> None:
    async with serving() as (line, _node):
        await prepared(line)
        told = await joined(line)
        assert told.assignment.topic_partitions == []
        await prepared(line, "t")
        await asyncio.sleep(2)
        told = await beat(line, "m", told.member_epoch)
        assert [each.partitions for each in told.assignment.topic_partitions] == [[0, 1]]


@pytest.mark.parametrize(
    ("member_id", "epoch", "more", "code"),
    [
        ("m", 7, {}, ErrorCode.GROUP_ID_NOT_FOUND),
        ("", 0, {"rebalance_timeout_ms": 1}, ErrorCode.INVALID_REQUEST),
        ("m", 0, {}, ErrorCode.INVALID_REQUEST),
        (
            "m",
            0,
            {
                "rebalance_timeout_ms": 1,
                "subscribed_topic_names": ["t"],
                "topic_partitions": [],
                "server_assignor": "x",
            },
            ErrorCode.UNSUPPORTED_ASSIGNOR,
        ),
        (
            "m",
            0,
            {"rebalance_timeout_ms": 1, "subscribed_topic_regex": "(", "topic_partitions": []},
            ErrorCode.INVALID_REGULAR_EXPRESSION,
        ),
    ],
)
async def test_what_is_refused(member_id: str, epoch: int, more: dict[str, Any], code: ErrorCode) -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        told = await beat(line, member_id, epoch, **more)
        assert told.error_code == code
        assert told.error_message


async def test_topics_that_may_not_be_seen_are_not_subscribed(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.DESCRIBE)
    async with serving() as (line, _node):
        assert (await joined(line)).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
