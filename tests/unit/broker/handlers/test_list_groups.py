"""ListGroups in every version."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.list_groups import ListGroupsRequest
from tests.support.asking import serving
from tests.support.denial import deny
from tests.support.group_lines import GROUP, commit, in_a_group, prepared


@pytest.mark.parametrize("version", range(6))
async def test_groups_of_all_coordinators_are_listed(version: int) -> None:
    async with serving() as (line, _node):
        nothing = await line.ask(ApiKey.LIST_GROUPS, version, ListGroupsRequest())
        assert (nothing.error_code, nothing.groups) == (ErrorCode.NONE, [])
        await prepared(line, "t")
        await commit(line, "t", 7)
        await in_a_group(line, "busy")
        response = await line.ask(ApiKey.LIST_GROUPS, version, ListGroupsRequest())
        found = {each.group_id: each for each in response.groups}
        assert found.keys() == {GROUP, "busy"}
        assert found["busy"].protocol_type == "any"
        if version >= 4:
            assert {each.group_state for each in found.values()} == {"Empty", "Stable"}
        if version >= 5:
            assert {each.group_type for each in found.values()} == {"classic"}


@pytest.mark.parametrize(
    ("states", "types", "found"),
    [
        (["stable"], [], {"busy"}),
        (["Empty", "Dead"], [], {GROUP}),
        ([], ["Classic"], {GROUP, "busy"}),
        ([], ["share"], set()),
    ],
)
async def test_groups_are_listed_by_state_and_type(states: list[str], types: list[str], found: set[str]) -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        await commit(line, "t", 7)
        await in_a_group(line, "busy")
        response = await line.ask(ApiKey.LIST_GROUPS, 5, ListGroupsRequest(states, types))
        assert {each.group_id for each in response.groups} == found


async def test_groups_that_may_not_be_seen_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.DESCRIBE)
    async with serving() as (line, node):
        await node.parts.groups.ensure_topic()
        await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("t")]))
        assert await commit(line, "t", 7) is ErrorCode.NONE
        response = await line.ask(ApiKey.LIST_GROUPS, 5, ListGroupsRequest())
        assert (response.error_code, response.groups) == (ErrorCode.NONE, [])
