"""Heartbeat in every version."""

import asyncio

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.heartbeat import HeartbeatRequest
from tests.support.asking import serving
from tests.support.group_lines import GROUP, in_a_group, prepared


@pytest.mark.parametrize("version", range(5))
async def test_heartbeats_keep_a_member_in_its_group(version: int) -> None:
    async with serving() as (line, _node):
        await prepared(line)
        told = await in_a_group(line)
        beat = HeartbeatRequest(GROUP, told.generation_id, told.member_id)
        for _ in range(5):
            await asyncio.sleep(8)
            assert (await line.ask(ApiKey.HEARTBEAT, version, beat)).error_code == ErrorCode.NONE
        await asyncio.sleep(11)
        assert (await line.ask(ApiKey.HEARTBEAT, version, beat)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("group", "member_id", "generation", "code"),
    [
        ("", None, 0, ErrorCode.INVALID_GROUP_ID),
        (GROUP, "nobody", 0, ErrorCode.UNKNOWN_MEMBER_ID),
        (GROUP, None, 1, ErrorCode.ILLEGAL_GENERATION),
        ("other", None, 0, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
async def test_strangers_are_told(group: str, member_id: str | None, generation: int, code: ErrorCode) -> None:
    async with serving() as (line, _node):
        await prepared(line)
        told = await in_a_group(line)
        beat = HeartbeatRequest(group, told.generation_id + generation, member_id or told.member_id)
        assert (await line.ask(ApiKey.HEARTBEAT, 4, beat)).error_code == code
