"""LeaveGroup: members go, one per request until version 2 and several from version 3 on."""

from functools import partial
from typing import Final

from riverlog.broker.coordinator_requests import ask_coordinator, tell_reason
from riverlog.broker.requests.context import Context, HandlerResult
from riverlog.groups.commands import CodesReply, Leave, Leaver
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse

_FIRST_VERSION_WITH_MANY_MEMBERS: Final = 3


def leave_group(request: LeaveGroupRequest, context: Context) -> HandlerResult[LeaveGroupResponse]:
    """Take the members out of the group."""
    if context.version >= _FIRST_VERSION_WITH_MANY_MEMBERS:
        identities = request.members
    else:
        identities = [MemberIdentity(request.member_id)]
    members = tuple(Leaver(each.member_id, each.group_instance_id) for each in identities)
    return ask_coordinator(
        context,
        Operation.READ,
        request.group_id,
        Leave(request.group_id, members),
        answer=partial(_response, request=request, members=members, context=context),
        refuse=lambda code: LeaveGroupResponse(error_code=code),
    )


def _response(
    reply: CodesReply, request: LeaveGroupRequest, members: tuple[Leaver, ...], context: Context
) -> LeaveGroupResponse:
    for code in (reply.code, *reply.codes):
        context.stats.failed(code)
    for member, code in zip(request.members, reply.codes, strict=False):
        if code is ErrorCode.NONE and member.reason:
            tell_reason("member left", context, request.group_id, member.member_id, member.reason)
    if context.version < _FIRST_VERSION_WITH_MANY_MEMBERS:
        return LeaveGroupResponse(error_code=next((code for code in (reply.code, *reply.codes) if code), reply.code))
    return LeaveGroupResponse(
        error_code=reply.code,
        members=[
            MemberResponse(member.member_id, member.group_instance_id, code)
            for member, code in zip(members, reply.codes, strict=False)  # no codes where the whole failed
        ],
    )
