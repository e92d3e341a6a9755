"""DeleteGroups in every version."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.delete_groups import DeleteGroupsRequest
from tests.support.asking import serving
from tests.support.denial import deny
from tests.support.group_lines import GROUP, commit, committed, in_a_group, prepared


@pytest.mark.parametrize("version", range(3))
async def test_only_groups_without_members_are_deleted(version: int) -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        await commit(line, "t", 7)
        await in_a_group(line, "busy")
        request = DeleteGroupsRequest([GROUP, "busy", "nobody"])
        response = await line.ask(ApiKey.DELETE_GROUPS, version, request)
        assert {each.group_id: each.error_code for each in response.results} == {
            GROUP: ErrorCode.NONE,
            "busy": ErrorCode.NON_EMPTY_GROUP,
            "nobody": ErrorCode.GROUP_ID_NOT_FOUND,
        }
        assert await committed(line, "t") == -1
        assert (await line.ask(ApiKey.DELETE_GROUPS, version, DeleteGroupsRequest([]))).results == []


async def test_not_everybody_may_delete_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.DELETE)
    async with serving() as (line, _node):
        (result,) = (await line.ask(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest([GROUP]))).results
        assert result.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
