"""What groups, offsets and administrators ask for wrongly, asked of Apache Kafka and of a node: the same answers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final
from uuid import UUID

import pytest

from riverlog.model.ids import Address
from riverlog.wire.consumer_protocol import Subscription, encode_told
from riverlog.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from riverlog.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from riverlog.wire.messages.delete_groups import DeleteGroupsRequest
from riverlog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from riverlog.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from riverlog.wire.messages.describe_groups import DescribeGroupsRequest
from riverlog.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.heartbeat import HeartbeatRequest
from riverlog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from riverlog.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from riverlog.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from riverlog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from riverlog.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from riverlog.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic
from riverlog.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.conformance.question_lines import Asking

Case = Callable[[Asking], Awaitable[None]]
CASES: Final[list[Case]] = []
NOBODY: Final = "nobody"
BROKER, TOPIC, GROUP = 4, 2, 32
SET: Final = 0
WISHES: Final = encode_told(Subscription(topics=["t"]))


def case(told: Case) -> Case:
    CASES.append(told)
    return told


async def join(
    asking: Asking, what: str, member: str = "", *, protocols: tuple[str, ...] = ("range",), **more: Any
) -> Any:
    offered = [JoinGroupRequestProtocol(name, WISHES) for name in protocols]
    values = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocol_type": "consumer"} | more
    request = JoinGroupRequest(**{"group_id": asking.name, "member_id": member, "protocols": offered, **values})
    return await asking.ask(what, request)


async def sync(asking: Asking, what: str, member: str, generation: int, **more: Any) -> None:
    values = {"protocol_type": "consumer", "protocol_name": "range"} | more
    await asking.ask(what, SyncGroupRequest(asking.name, generation, member, **values))


async def commit(asking: Asking, what: str, offset: int = 5, version: int = 9, **more: Any) -> None:
    partition, metadata, topic = more.pop("partition", 0), more.pop("metadata", ""), more.pop("topic", asking.name)
    offsets = [OffsetCommitRequestPartition(partition, offset, -1, metadata)]
    topics = [OffsetCommitRequestTopic(name=topic, partitions=offsets)]
    await asking.ask(what, OffsetCommitRequest(**{"group_id": asking.name, "topics": topics, **more}), version)


async def beat(asking: Asking, what: str, member: str, epoch: int, **more: Any) -> Any:
    return await asking.ask(
        what,
        ConsumerGroupHeartbeatRequest(**{"group_id": asking.name, "member_id": member, "member_epoch": epoch, **more}),
    )


@case
async def members_come_and_go(asking: Asking) -> None:
    for wrong in (
        {"group_id": ""},
        {"protocols": []},
        {"protocol_type": ""},
        {"session_timeout_ms": 1},
        {"session_timeout_ms": 10**8},
        {"member_id": NOBODY},
    ):
        await join(asking, f"join with {wrong}", **wrong)
    newcomer = (await join(asking, "join")).member_id
    await asking.ask("beat before joining", HeartbeatRequest(asking.name, 0, newcomer))
    joined = await join(asking, "join with the id", newcomer)
    member, generation = joined.member_id, joined.generation_id
    await commit(asking, "commit before sync", member_id=member, generation_id_or_member_epoch=generation)
    await asking.ask("describe before sync", DescribeGroupsRequest([asking.name]))
    await sync(asking, "sync as another type", member, generation, protocol_type="connect")
    await sync(asking, "sync by another protocol", member, generation, protocol_name="sticky")
    await sync(asking, "sync too early", member, generation + 5)
    share = [SyncGroupRequestAssignment(member, b"abc")]
    await sync(asking, "sync", member, generation, assignments=share)
    for number in (-1, generation - 1, generation, generation + 1):
        await asking.ask(f"beat in {number}", HeartbeatRequest(asking.name, number, member))
    for group, name in ((asking.name, NOBODY), ("no-such-group", member), ("", member)):
        await asking.ask("beat of a stranger", HeartbeatRequest(group, generation, name))
    await join(asking, "join as another type", protocol_type="connect")
    await join(asking, "join with another protocol", protocols=("other",))
    await asking.ask("describe", DescribeGroupsRequest([asking.name, "no-such-group"]))
    await asking.ask("delete", DeleteGroupsRequest([asking.name, "no-such-group"]))
    for leaver in (MemberIdentity(NOBODY), MemberIdentity("", "no-such-instance"), MemberIdentity(member)):
        await asking.ask("leave", LeaveGroupRequest(asking.name, [leaver]))
    await asking.ask("describe the empty group", DescribeGroupsRequest([asking.name]))
    await asking.ask("delete the empty group", DeleteGroupsRequest([asking.name]))


@case
async def static_members(asking: Asking) -> None:
    joined = await join(asking, "join", group_instance_id="i")
    first, generation = joined.member_id, joined.generation_id
    share = [SyncGroupRequestAssignment(first, b"a")]
    await sync(asking, "sync", first, generation, group_instance_id="i", assignments=share)
    for member, instance in ((first, "i"), (NOBODY, "i"), (first, "other")):
        await asking.ask("beat", HeartbeatRequest(asking.name, generation, member, instance))
    again = await join(asking, "join again", group_instance_id="i")
    await sync(asking, "sync again", again.member_id, again.generation_id, group_instance_id="i")
    await asking.ask("beat of the old one", HeartbeatRequest(asking.name, generation, first, "i"))
    await join(asking, "join as the old one", first, group_instance_id="i")
    await asking.ask("leave as the old one", LeaveGroupRequest(asking.name, [MemberIdentity(first, "i")]))
    await asking.ask("leave by name", LeaveGroupRequest(asking.name, [MemberIdentity("", "i")]))
    await asking.ask("leave by name again", LeaveGroupRequest(asking.name, [MemberIdentity("", "i")]))


@case
async def offsets(asking: Asking) -> None:
    await commit(asking, "commit")
    for wrong in (
        {"partition": 7},
        {"topic": "no-such-topic"},
        {"metadata": "x" * 5000},
        {"group_id": "unborn", "member_id": NOBODY, "generation_id_or_member_epoch": 4},
        {"member_id": NOBODY, "generation_id_or_member_epoch": 4},
        {"generation_id_or_member_epoch": 4},
    ):
        await commit(asking, f"commit with {sorted(wrong)}", **wrong)
    for version in range(2, 10):
        await commit(asking, f"commit {version}", version, version, metadata=f"{version}")
    for topic_id in (asking.topic_id, UUID(int=77), UUID(int=0)):
        topic = OffsetFetchRequestTopic(topic_id, partition_indexes=[0, 1])
        await asking.ask(
            "fetch by id", OffsetFetchRequest(groups=[OffsetFetchRequestGroup(asking.name, topics=[topic])])
        )
    groups = [OffsetFetchRequestGroup(name, topics=None) for name in (asking.name, "no-such-group")]
    await asking.ask("fetch all", OffsetFetchRequest(groups=groups), 9)
    await asking.ask(
        "fetch as a member", OffsetFetchRequest(groups=[OffsetFetchRequestGroup(asking.name, NOBODY, 3)]), 9
    )
    for group, name, partition in (
        (asking.name, asking.name, 9),
        (asking.name, "no", 0),
        ("no", "no", 0),
        (asking.name, asking.name, 0),
    ):
        topic_to_delete = OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(partition)])
        await asking.ask("delete an offset", OffsetDeleteRequest(group, [topic_to_delete]))


@case
async def consumers(asking: Asking) -> None:
    joining: dict[str, Any] = {
        "rebalance_timeout_ms": 30_000,
        "subscribed_topic_names": [asking.name],
        "topic_partitions": [],
    }
    for wrong in (
        {"group_id": ""},
        {"member_id": ""},
        {"member_epoch": -3},
        {"rebalance_timeout_ms": -1},
        {"subscribed_topic_names": None},
        {"topic_partitions": None},
        {"topic_partitions": [TopicPartitions(asking.topic_id, [0])]},
        {"server_assignor": "no-such-assignor"},
        {"rack_id": ""},
        {"instance_id": ""},
        {"subscribed_topic_regex": "(["},
        {"subscribed_topic_regex": "(?=x)"},
    ):
        await beat(asking, f"join with {sorted(wrong)}", NOBODY, 0, **(joining | wrong))
    for epoch in (5, -1, -2):
        await beat(asking, f"beat in {epoch}", NOBODY, epoch)
    idle = await beat(asking, "epochs are left out", "a", 0, **(joining | {"subscribed_topic_names": []}))
    assert idle.member_epoch > 0
    asking.said.pop()
    for epoch in (idle.member_epoch + 1, idle.member_epoch):
        name = NOBODY if epoch == idle.member_epoch else "a"
        await beat(asking, "beat in an epoch of somebody else", name, epoch)
    await asking.ask("describe others", ConsumerGroupDescribeRequest(["no-such-group", ""]))
    for epoch in (idle.member_epoch - 1, idle.member_epoch + 1):
        await commit(asking, "commit in another epoch", member_id="a", generation_id_or_member_epoch=epoch)
    await commit(asking, "commit from outside")
    await commit(asking, "commit of a stranger", member_id=NOBODY, generation_id_or_member_epoch=1)
    await asking.ask("delete", DeleteGroupsRequest([asking.name]))
    await asking.ask("beat as a classic member", HeartbeatRequest(asking.name, 1, "a"))
    for _ in range(2):
        await beat(asking, "leave", "a", -1)


@case
async def administration(asking: Asking) -> None:
    for kind in (0, 1, 2):
        await asking.ask("find nobody", FindCoordinatorRequest(key_type=kind, coordinator_keys=[""]))
    for kind, name, setting, value in (
        (BROKER, "1", "log.dirs", "elsewhere"),
        (BROKER, "1", "log.cleaner.backoff.ms", "soon"),
        (BROKER, "7", "log.retention.ms", "5"),
        (TOPIC, asking.name, "retention.ms", "soon"),
        (TOPIC, asking.name, "retention.ms", None),
        (TOPIC, asking.name, "no.such.setting", "5"),
        (TOPIC, "no-such-topic", "retention.ms", "5"),
        (GROUP, asking.name, "consumer.session.timeout.ms", "soon"),
        (GROUP, "", "consumer.session.timeout.ms", "50000"),
    ):
        change = AlterConfigsResource(kind, name, [AlterableConfig(setting, SET, value)])
        await asking.ask(f"set {setting}={value}", IncrementalAlterConfigsRequest([change]))
    for component in (("user", 0, None), ("user", 1, "a"), ("user", 3, None), ("", 2, None), ("ip", 2, None)):
        await asking.ask(f"quotas of {component}", DescribeClientQuotasRequest([ComponentData(*component)]))
    for cursor in (Cursor(asking.name, -1), Cursor("no-such-topic", 0)):
        await asking.ask(
            "describe from nowhere", DescribeTopicPartitionsRequest([TopicRequest(asking.name)], cursor=cursor)
        )
    for state in (DeleteTopicState(topic_id=UUID(int=9)), DeleteTopicState(), DeleteTopicState("a", UUID(int=9))):
        await asking.ask("delete what is not there", DeleteTopicsRequest([state], timeout_ms=5_000))


async def told(address: Address, name: str, story: Case) -> list[str]:
    asking = await Asking.open(address, name)
    try:
        await story(asking)
    finally:
        asking.close()
    return asking.said


@pytest.mark.parametrize("story", CASES, ids=[each.__name__ for each in CASES])
def test_apache_kafka_says_the_same(kafka: Address, riverlog: Address, story: Case) -> None:
    theirs = asyncio.run(told(kafka, story.__name__, story))
    assert asyncio.run(told(riverlog, story.__name__, story)) == theirs
