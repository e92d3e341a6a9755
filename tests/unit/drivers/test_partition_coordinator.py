"""A coordinator, with groups as the example: what it says while it cannot decide, and who is told when it goes away."""

import asyncio

import pytest

from riverlog.groups.commands import ListGroups
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.limits import COORDINATOR_RELOAD_SECONDS_MIN
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.heartbeat import HeartbeatRequest
from tests.support.asking import connected, serving
from tests.support.group_lines import GROUP, commit, committed, in_a_group, join_request, prepared, sync_request
from tests.support.virtual_time import run
from tests.support.world import Universe


def test_while_a_coordinator_reads_its_log_clients_ask_again() -> None:
    async def scenario() -> None:
        universe = Universe()
        async with serving(universe) as (line, _node):
            await prepared(line, "t")
            for offset in range(1_000):
                await commit(line, "t", offset)
        node = universe.node()
        await node.start()
        with pytest.raises(Refusal) as refused:
            node._groups.submit(GROUP, ListGroups())
        assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        with pytest.raises(Refusal):
            node._groups.submit_to_all(ListGroups())
        line = await connected(universe)
        await asyncio.sleep(1)
        assert await committed(line, "t") == 999
        await node.stop()

    run(scenario())


def test_a_coordinator_whose_log_failed_comes_back_with_what_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "no room")

    async def scenario() -> None:
        universe = Universe()
        async with serving(universe) as (line, node):
            await prepared(line, "t")
            await commit(line, "t", 1)
            told = await in_a_group(line)
            member = {"member_id": told.member_id, "generation_id_or_member_epoch": told.generation_id}
            parked = (await connected(universe)).send(ApiKey.JOIN_GROUP, 3, join_request())
            await asyncio.sleep(0.01)
            assert not parked.done()
            with monkeypatch.context() as full:
                volume = node._homes[0].volume
                full.setattr(volume, "writable", False)
                full.setattr(volume, "check_writable", refuse)
                assert await commit(line, "t", 2, **member) is ErrorCode.NOT_COORDINATOR
                assert (await parked).error_code == ErrorCode.NOT_COORDINATOR
                assert await commit(line, "t", 2) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                beat = HeartbeatRequest(GROUP, told.generation_id, told.member_id)
                assert (await line.ask(ApiKey.HEARTBEAT, 4, beat)).error_code == ErrorCode.NONE
                synced = await line.ask(ApiKey.SYNC_GROUP, 5, sync_request(told))
                assert synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS
            await asyncio.sleep(COORDINATOR_RELOAD_SECONDS_MIN + 0.1)
            assert await committed(line, "t") == 1

    run(scenario())


def test_members_that_wait_for_others_are_told_when_the_node_stops() -> None:
    async def scenario() -> None:
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

    run(scenario())
