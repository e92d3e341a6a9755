"""DescribeGroups in every version."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_groups import DescribeGroupsRequest
from tests.support.asking import serving
from tests.support.denial import deny
from tests.support.group_lines import GROUP, in_a_group, prepared


@pytest.mark.parametrize("version", range(7))
async def test_a_group_is_described_with_its_members(version: int) -> None:
    async with serving() as (line, _node):
        await prepared(line)
        told = await in_a_group(line, group_instance_id="a")
        request = DescribeGroupsRequest([GROUP, "nobody"], include_authorized_operations=True)
        group, missing = (await line.ask(ApiKey.DESCRIBE_GROUPS, version, request)).groups
        assert (group.error_code, group.group_state) == (ErrorCode.NONE, "Stable")
        assert (group.protocol_type, group.protocol_data) == ("any", "range")
        (member,) = group.members
        assert (member.member_id, member.member_metadata, member.member_assignment) == (
            told.member_id,
            b"wish",
            b"part",
        )
        assert member.group_instance_id == ("a" if version >= 4 else None)
        assert (group.authorized_operations > 0) == (version >= 3)
        assert (missing.group_id, missing.group_state, missing.members) == ("nobody", "Dead", [])
        assert missing.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE)


async def test_who_may_not_see_a_group_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.DESCRIBE)
    async with serving() as (line, _node):
        (group,) = (await line.ask(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest([GROUP]))).groups
        assert group.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
