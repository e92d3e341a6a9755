"""A group coordinator: what it survives, and what it learns about topics."""

import asyncio

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from riverlog.wire.messages.heartbeat import HeartbeatRequest
from tests.support.asking import serving
from tests.support.group_lines import GROUP, commit, committed, in_a_group, prepared
from tests.support.virtual_time import run
from tests.support.world import Universe


@pytest.mark.parametrize("stops_cleanly", [True, False])
def test_groups_and_offsets_survive(stops_cleanly: bool) -> None:
    async def scenario() -> None:
        universe = Universe()
        async with serving(universe, durability="fsync") as (line, node):
            await prepared(line, "t")
            told = await in_a_group(line)
            assert (
                await commit(line, "t", 42, member_id=told.member_id, generation_id_or_member_epoch=1) is ErrorCode.NONE
            )
            await (node.stop() if stops_cleanly else universe.lose_power())
        async with serving(universe, durability="fsync") as (line, node):
            await asyncio.sleep(1)  # until the log is read
            assert node._groups.loading() == 0
            assert await committed(line, "t") == 42
            heartbeat = HeartbeatRequest(GROUP, told.generation_id, told.member_id)
            assert (await line.ask(ApiKey.HEARTBEAT, 4, heartbeat)).error_code == ErrorCode.NONE
            await asyncio.sleep(11)  # its session
            assert (await line.ask(ApiKey.HEARTBEAT, 4, heartbeat)).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    run(scenario())


def test_offsets_go_with_their_topic() -> None:
    async def scenario() -> None:
        universe = Universe()
        async with serving(universe) as (line, _node):
            await prepared(line, "t", "u")
            await commit(line, "t", 1)
            await commit(line, "u", 2)
            await line.ask(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]))
            assert (await committed(line, "t"), await committed(line, "u")) == (-1, 2)
        async with serving(universe) as (line, _node):
            await asyncio.sleep(1)
            assert (await committed(line, "t"), await committed(line, "u")) == (-1, 2)

    run(scenario())
