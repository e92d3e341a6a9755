"""The way of a request to its group's coordinator, and of the refusals back."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_groups import DescribeGroupsRequest
from riverlog.wire.messages.heartbeat import HeartbeatRequest
from tests.support.asking import serving
from tests.support.denial import deny
from tests.support.group_lines import GROUP, in_a_group, prepared
from tests.support.virtual_time import run


def test_who_may_not_use_a_group_does_not_reach_its_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        deny(monkeypatch, Operation.READ)
        async with serving() as (line, _node):
            await prepared(line)
            answer = await line.ask(ApiKey.HEARTBEAT, 4, HeartbeatRequest(GROUP, 1, "m"))
            assert answer.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED

    run(scenario())


def test_members_are_described_by_their_client_and_host() -> None:
    async def scenario() -> None:
        async with serving() as (line, _node):
            await prepared(line)
            await in_a_group(line)
            (group,) = (await line.ask(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest([GROUP]))).groups
            (member,) = group.members
            assert member.client_id == "test"
            assert member.client_host.startswith("/")
            assert member.member_id.startswith("test-")

    run(scenario())
