"""FindCoordinator: the node itself, in every version."""

import asyncio

import pytest

from riverlog.groups.limits import STRAGGLERS_WAIT_MS
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.support.asking import connected, serving
from tests.support.group_lines import join_request, prepared
from tests.support.world import Universe


@pytest.mark.parametrize("version", range(7))
async def test_the_node_looks_after_every_key(version: int) -> None:
    async with serving(node_id="3") as (line, _node):
        request = FindCoordinatorRequest(key="g", coordinator_keys=["g", "h"])
        response = await line.ask(ApiKey.FIND_COORDINATOR, version, request)
        found = [response] if version < 4 else response.coordinators
        for each in found:
            assert (each.error_code, each.node_id, each.host, each.port) == (ErrorCode.NONE, 3, "node", 9092)
        if version >= 4:
            assert [each.key for each in found] == ["g", "h"]


async def test_other_kinds_of_coordinators_are_not_known() -> None:
    async with serving() as (line, _node):
        request = FindCoordinatorRequest(key_type=9, coordinator_keys=["g"])
        (found,) = (await line.ask(ApiKey.FIND_COORDINATOR, 6, request)).coordinators
        assert (found.error_code, found.node_id) == (ErrorCode.INVALID_REQUEST, -1)


async def test_members_that_ask_together_share_the_first_generation() -> None:
    universe = Universe()
    async with serving(universe) as (line, _node):
        other = await connected(universe)
        for each in (line, other):
            await prepared(each)
        first = line.send(ApiKey.JOIN_GROUP, 3, join_request())
        second = await other.ask(ApiKey.JOIN_GROUP, 3, join_request())
        assert (await first).generation_id == second.generation_id == 1


async def test_a_question_that_is_repeated_comes_from_the_same_member() -> None:
    async with serving() as (line, _node):
        for _ in range(2):
            await prepared(line)
        asked_at = asyncio.get_running_loop().time()
        await line.ask(ApiKey.JOIN_GROUP, 3, join_request())
        assert asyncio.get_running_loop().time() - asked_at < STRAGGLERS_WAIT_MS / 1000
