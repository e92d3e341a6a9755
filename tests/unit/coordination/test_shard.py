"""A shard, with groups as the example: what it says while it cannot decide, and who is told when it goes away."""

import asyncio
import errno
from dataclasses import replace
from typing import Any, Final

import pytest

from riverlog.coordination.limits import COORDINATOR_RELOAD_SECONDS_MIN
from riverlog.groups.commands import ListGroups
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import LeaderEpoch
from riverlog.node import Node
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from riverlog.wire.messages.heartbeat import HeartbeatRequest
from riverlog.wire.messages.join_group import JoinGroupRequestProtocol
from riverlog.wire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from tests.support.asking import Line, connected, serving
from tests.support.group_lines import (
    GROUP,
    commit,
    commit_request,
    committed,
    in_a_group,
    join_request,
    prepared,
    sync_request,
)
from tests.support.world import Universe

ONE_SMALL_LOG: Final = {"offsets_topic_num_partitions": "1", "offsets_topic_segment_bytes": str(1 << 20)}
LARGE: Final = "large"


async def test_while_a_coordinator_reads_its_log_clients_ask_again() -> None:
    universe = Universe()
    async with serving(universe) as (line, _node):
        await prepared(line, "t")
        for offset in range(1_000):
            await commit(line, "t", offset)
    node = universe.node()
    await node.start()
    for asked in (node.parts.groups.submit(GROUP, ListGroups()), *node.parts.groups.submit_to_all(ListGroups())):
        with pytest.raises(Refusal) as refused:
            asked.result()
        assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    line = await connected(universe)
    await asyncio.sleep(1)
    assert await committed(line, "t") == 999
    await node.stop()


async def test_a_coordinator_whose_log_failed_comes_back_with_what_is_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> None:
        raise Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "broken")

    universe = Universe()
    async with serving(universe) as (line, node):
        await prepared(line, "t")
        await commit(line, "t", 1)
        told = await in_a_group(line)
        member = {"member_id": told.member_id, "generation_id_or_member_epoch": told.generation_id}
        parked = (await connected(universe)).send(ApiKey.JOIN_GROUP, 3, join_request())
        await asyncio.sleep(0.01)
        assert not parked.done()
        with monkeypatch.context() as broken:
            health = node.parts.registry.directories[0].health
            broken.setattr(health, "_failure", "broken")
            broken.setattr(health, "writable", False)
            broken.setattr(health, "check_writable", refuse)
            assert await commit(line, "t", 2, **member) is ErrorCode.NOT_COORDINATOR
            assert (await parked).error_code == ErrorCode.NOT_COORDINATOR
            assert await commit(line, "t", 2) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            beat = HeartbeatRequest(GROUP, told.generation_id, told.member_id)
            assert (await line.ask(ApiKey.HEARTBEAT, 4, beat)).error_code == ErrorCode.NONE
            synced = await line.ask(ApiKey.SYNC_GROUP, 5, sync_request(told))
            assert synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        await asyncio.sleep(COORDINATOR_RELOAD_SECONDS_MIN + 0.1)
        assert await committed(line, "t") == 1


async def test_while_the_disk_is_full_commits_are_refused_and_the_coordinator_stays() -> None:
    universe = Universe()
    async with serving(universe, **ONE_SMALL_LOG) as (line, node):
        await prepared(line, "t")
        await commit(line, "t", 1)
        told = await in_a_group(line)
        member = {"member_id": told.member_id, "generation_id_or_member_epoch": told.generation_id}
        universe.disk.fail(0, errno.ENOSPC, on=("write",), lasting=True)
        for _ in range(3):
            assert await commit(line, "t", 2, **member) is ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert await beats(line, told) is ErrorCode.NONE
            assert await committed(line, "t") == 1
        other = await connected(universe)
        joining = other.send(ApiKey.JOIN_GROUP, 3, join_request())
        again = await line.ask(ApiKey.JOIN_GROUP, 3, join_request(member_id=told.member_id))
        assert (again.error_code, (await joining).error_code) == (ErrorCode.NONE, ErrorCode.NONE)
        synced = await line.ask(ApiKey.SYNC_GROUP, 3, sync_request(again))
        assert synced.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert never_read_again(node)
        universe.disk.heal()
        node.parts.registry.directories[0].health.look()
        assert await commit(line, "t", 2, group_id="other") is ErrorCode.NONE
        await asyncio.sleep(60)  # the sessions of those who were refused end, and that can be written
        await in_a_group(line)
        assert never_read_again(node)


async def test_members_that_wait_for_others_are_told_when_the_node_stops() -> None:
    universe = Universe()
    async with serving(universe) as (line, node):
        await prepared(line)
        await in_a_group(line)
        other = await connected(universe)
        parked = other.send(ApiKey.JOIN_GROUP, 3, join_request())
        await asyncio.sleep(0.01)
        assert not parked.done()
        await node.stop()
        assert (await parked).error_code == ErrorCode.NOT_COORDINATOR


def never_read_again(node: Node) -> bool:
    return [each._runner._incarnation for each in node.parts.groups._shards.values()] == [0]


async def beats(line: Line, told: Any, group: str = GROUP) -> ErrorCode:
    beat = HeartbeatRequest(group, told.generation_id, told.member_id)
    return ErrorCode((await line.ask(ApiKey.HEARTBEAT, 4, beat)).error_code)


async def test_a_classic_group_that_cannot_be_written_down_is_refused_alone() -> None:
    large = replace(join_request(LARGE), protocols=[JoinGroupRequestProtocol("range", bytes(2 << 20))])
    async with serving(**ONE_SMALL_LOG) as (line, node):
        await prepared(line, "t")
        told = await in_a_group(line)
        for number in range(5):
            member = await line.ask(ApiKey.JOIN_GROUP, 3, large)
            assert member.error_code == ErrorCode.NONE
            synced = await line.ask(ApiKey.SYNC_GROUP, 3, sync_request(member, LARGE))
            assert synced.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            assert await beats(line, member, LARGE) is ErrorCode.UNKNOWN_MEMBER_ID
            assert await beats(line, told) is ErrorCode.NONE
            committer = {"member_id": told.member_id, "generation_id_or_member_epoch": told.generation_id}
            assert await commit(line, "t", number, **committer) is ErrorCode.NONE
        assert never_read_again(node)
        await in_a_group(line, LARGE)


async def test_a_member_of_a_consumer_group_that_cannot_be_written_down_is_refused_alone() -> None:
    def heartbeat(group: str, member: str, *topics: str) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group,
            member,
            0,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=list(topics),
            topic_partitions=[],
        )

    names = [f"{number:0>240}" for number in range(9_000)]
    async with serving(**ONE_SMALL_LOG) as (line, node):
        await prepared(line, "t")
        for number in range(3):
            refused = await line.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, heartbeat(LARGE, f"m{number}", *names))
            assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            taken = await line.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, heartbeat(GROUP, f"m{number}", "t"))
            assert taken.error_code == ErrorCode.NONE
        await asyncio.sleep(60)  # sessions of whoever was refused are none
        assert never_read_again(node)
        taken = await line.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, heartbeat(LARGE, "m0", "t"))
        assert taken.error_code == ErrorCode.NONE


@pytest.mark.parametrize("is_member", [True, False])
async def test_offsets_that_cannot_be_written_down_are_refused_alone(is_member: bool) -> None:
    group = GROUP if is_member else "x" * 32_000
    async with serving(**ONE_SMALL_LOG) as (line, node):
        await prepared(line, "t")
        told = await in_a_group(line)
        parts = [OffsetCommitRequestPartition(0, 5, -1, "n" * 4_000) for _ in range(300)]
        request = commit_request("t", 5, topics=[OffsetCommitRequestTopic(name="t", partitions=parts)])
        if is_member:
            request.member_id, request.generation_id_or_member_epoch = told.member_id, told.generation_id
        request.group_id = group
        refused = await line.ask(ApiKey.OFFSET_COMMIT, 9, request)
        codes = {part.error_code for part in refused.topics[0].partitions}
        assert codes == {ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
        assert await beats(line, told) is ErrorCode.NONE
        assert never_read_again(node)


async def test_offsets_of_a_group_with_a_long_name_are_forgotten_in_batches_that_fit() -> None:
    group, offsets = "x" * 20_000, 100
    async with serving(**ONE_SMALL_LOG) as (line, node):
        await prepared(line)
        await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("t", offsets)]))
        for first in range(0, offsets, 25):
            parts = [OffsetCommitRequestPartition(index, 5) for index in range(first, first + 25)]
            request = commit_request("t", 5, topics=[OffsetCommitRequestTopic(name="t", partitions=parts)])
            request.group_id = group
            answer = await line.ask(ApiKey.OFFSET_COMMIT, 9, request)
            assert {part.error_code for part in answer.topics[0].partitions} == {ErrorCode.NONE}
        (shard,) = node.parts.groups._shards.values()
        assert len(shard.machine.state.offsets.of(group)) == offsets
        await line.ask(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]))
        await asyncio.sleep(1)
        assert not shard.machine.state.offsets.has_group(group)
        assert never_read_again(node)


async def test_the_epoch_in_which_a_partition_is_led_only_grows() -> None:
    async with serving() as (line, node):
        await prepared(line, "t")
        await commit(line, "t", 1)
        (shard,) = node.parts.groups
        assert shard.epoch == 0
        shard.lead(LeaderEpoch(0))
        shard.lead(LeaderEpoch(2))
        with pytest.raises(AssertionError):
            shard.lead(LeaderEpoch(1))
        assert shard.epoch == 2
