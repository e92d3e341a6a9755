"""The way of a request to its group's coordinator, and of the refusals back."""

import asyncio
import gc

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.headers import encode_request
from riverlog.wire.messages.describe_groups import DescribeGroupsRequest
from riverlog.wire.messages.heartbeat import HeartbeatRequest
from tests.support.asking import serving
from tests.support.denial import deny
from tests.support.group_lines import GROUP, in_a_group, prepared


async def test_who_may_not_use_a_group_does_not_reach_its_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.READ)
    async with serving() as (line, _node):
        await prepared(line)
        answer = await line.ask(ApiKey.HEARTBEAT, 4, HeartbeatRequest(GROUP, 1, "m"))
        assert answer.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


async def test_members_are_described_by_their_client_and_host() -> None:
    async with serving() as (line, _node):
        await prepared(line)
        await in_a_group(line)
        (group,) = (await line.ask(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest([GROUP]))).groups
        (member,) = group.members
        assert member.client_id == "test"
        assert member.client_host.startswith("/")
        assert member.member_id.startswith("test-")


async def test_a_refusal_for_a_client_that_is_gone_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.DESCRIBE)
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, fault: faults.append(fault))
    async with serving() as (line, _node):
        asked = encode_request(API_BY_KEY[ApiKey.DESCRIBE_GROUPS], 6, 1, "test", DescribeGroupsRequest([GROUP]))
        line.send_bytes(asked + b"\xff" * 4)  # what is no length ends the connection before the answer is made
        await line.ended.wait()
    gc.collect()
    await asyncio.sleep(0)
    assert faults == []
