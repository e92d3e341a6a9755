"""LeaveGroup in every version."""

import logging

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.support.asking import serving
from tests.support.group_lines import GROUP, in_a_group, prepared
from tests.support.virtual_time import run


@pytest.mark.parametrize("version", range(6))
async def test_a_member_leaves_once(version: int) -> None:
    async with serving() as (line, _node):
        await prepared(line)
        told = await in_a_group(line)
        for code in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
            request = LeaveGroupRequest(GROUP, [MemberIdentity(told.member_id)], told.member_id)
            answer = await line.ask(ApiKey.LEAVE_GROUP, version, request)
            if version < 3:
                assert answer.error_code == code
            else:
                assert answer.error_code == ErrorCode.NONE
                assert [(each.member_id, each.error_code) for each in answer.members] == [(told.member_id, code)]


async def test_an_operator_removes_a_static_member_by_its_name() -> None:
    async with serving() as (line, _node):
        await prepared(line)
        await in_a_group(line, group_instance_id="a")
        request = LeaveGroupRequest(GROUP, [MemberIdentity("", "a"), MemberIdentity("", "b")])
        answer = await line.ask(ApiKey.LEAVE_GROUP, 5, request)
        assert [(each.group_instance_id, each.error_code) for each in answer.members] == [
            ("a", ErrorCode.NONE),
            ("b", ErrorCode.UNKNOWN_MEMBER_ID),
        ]


async def test_a_group_without_a_name_is_refused_as_a_whole() -> None:
    async with serving() as (line, _node):
        await prepared(line)
        answer = await line.ask(ApiKey.LEAVE_GROUP, 4, LeaveGroupRequest("", [MemberIdentity("m")]))
        assert (answer.error_code, answer.members) == (ErrorCode.INVALID_GROUP_ID, [])


def test_why_a_member_came_and_went_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with serving() as (line, _node):
            await prepared(line)
            told = await in_a_group(line, reason="a new deployment")
            leavers = [MemberIdentity(told.member_id, None, "too slow"), MemberIdentity("nobody", None, "not there")]
            await line.ask(ApiKey.LEAVE_GROUP, 5, LeaveGroupRequest(GROUP, leavers))
            said = [
                (record.getMessage(), record.__dict__["fields"]["member"], record.__dict__["fields"]["reason"])
                for record in caplog.records
                if record.name == "riverlog.groups"
            ]
            assert said == [
                ("member joined", told.member_id, "a new deployment"),
                ("member left", told.member_id, "too slow"),
            ]

    with caplog.at_level(logging.INFO, logger="riverlog.groups"):
        run(scenario())
