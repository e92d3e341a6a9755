"""JoinGroup in every version."""

import asyncio

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from tests.support.asking import connected, serving
from tests.support.group_lines import join_request, prepared, sync_request
from tests.support.world import Universe


@pytest.mark.parametrize("version", range(10))
async def test_a_newcomer_joins(version: int) -> None:
    async with serving() as (line, _node):
        await prepared(line)
        told = await line.ask(ApiKey.JOIN_GROUP, version, join_request())
        if version >= 4:
            assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
            assert told.protocol_name == (None if version >= 7 else "")
            told = await line.ask(ApiKey.JOIN_GROUP, version, join_request(member_id=told.member_id))
        assert (told.error_code, told.generation_id, told.protocol_name) == (ErrorCode.NONE, 1, "range")
        assert told.protocol_type == ("any" if version >= 7 else None)
        assert told.leader == told.member_id
        assert [(each.member_id, each.metadata) for each in told.members] == [(told.member_id, b"wish")]


async def test_a_second_member_begins_a_new_generation() -> None:
    universe = Universe()
    async with serving(universe) as (line, _node):
        await prepared(line)
        first = await line.ask(ApiKey.JOIN_GROUP, 3, join_request())
        other = await connected(universe)
        waits = other.send(ApiKey.JOIN_GROUP, 3, join_request())
        await asyncio.sleep(0.01)
        assert not waits.done()
        stale = await line.ask(ApiKey.SYNC_GROUP, 3, sync_request(first))
        assert stale.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        again = await line.ask(ApiKey.JOIN_GROUP, 3, join_request(member_id=first.member_id))
        second = await waits
        assert again.generation_id == second.generation_id == 2
        assert second.leader == again.leader == first.member_id
        assert {each.member_id for each in again.members} == {first.member_id, second.member_id}
        assert second.members == []


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
async def test_what_cannot_join(more: dict[str, object], code: ErrorCode) -> None:
    async with serving() as (line, _node):
        await prepared(line)
        for version in (0, 9):
            told = await line.ask(ApiKey.JOIN_GROUP, version, join_request(**more))  # type: ignore[arg-type]
            assert (told.error_code, told.generation_id) == (code, -1)
