"""SyncGroup in every version."""

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.asking import serving
from tests.support.group_lines import GROUP, joined, prepared, sync_request


@pytest.mark.parametrize("version", range(6))
async def test_the_leader_shares_out_and_gets_its_part(version: int) -> None:
    async with serving() as (line, _node):
        await prepared(line)
        told = await joined(line)
        parts = [SyncGroupRequestAssignment(told.member_id, b"part")]
        synced = await line.ask(ApiKey.SYNC_GROUP, version, sync_request(told, assignments=parts))
        assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"part")
        assert (synced.protocol_type, synced.protocol_name) == (("any", "range") if version >= 5 else (None, None))


async def test_from_version_5_on_the_protocol_must_be_named() -> None:
    async with serving() as (line, _node):
        await prepared(line)
        told = await joined(line)
        request = SyncGroupRequest(GROUP, told.generation_id, told.member_id)
        for version, code in ((4, ErrorCode.NONE), (5, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)):
            assert (await line.ask(ApiKey.SYNC_GROUP, version, request)).error_code == code


@pytest.mark.parametrize(
    ("group", "member_id", "generation", "code"),
    [
        ("", None, 0, ErrorCode.INVALID_GROUP_ID),
        (GROUP, "nobody", 0, ErrorCode.UNKNOWN_MEMBER_ID),
        (GROUP, None, 1, ErrorCode.ILLEGAL_GENERATION),
        ("other", None, 0, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
async def test_who_does_not_belong_gets_no_part(
    group: str, member_id: str | None, generation: int, code: ErrorCode
) -> None:
    async with serving() as (line, _node):
        await prepared(line)
        told = await joined(line)
        request = SyncGroupRequest(group, told.generation_id + generation, member_id or told.member_id)
        assert (await line.ask(ApiKey.SYNC_GROUP, 3, request)).error_code == code
