"""JoinGroup: into a classic group, answered when its next generation begins."""

from functools import partial
from typing import Final
from uuid import UUID

from riverlog.broker.coordinator_requests import ask_coordinator, client_of, tell_reason
from riverlog.broker.requests.context import Context, HandlerResult
from riverlog.groups.commands import NO_MEMBER, Join, JoinReply, Protocol
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

_FIRST_VERSION_WITH_REBALANCE_TIMEOUT: Final = 1
_FIRST_VERSION_THAT_JOINS_TWICE: Final = 4
_FIRST_VERSION_WITH_NULL_PROTOCOL: Final = 7
_FIRST_VERSION_THAT_SKIPS_ASSIGNMENT: Final = 9


def join_group(request: JoinGroupRequest, context: Context) -> HandlerResult[JoinGroupResponse]:
    """Ask the coordinator to take the member in."""
    command = Join(
        request.group_id,
        client_of(context),
        UUID(int=context.services.random.getrandbits(128), version=4),
        request.member_id,
        request.group_instance_id,
        request.protocol_type,
        tuple(Protocol(each.name, each.metadata) for each in request.protocols),
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms
        if context.version >= _FIRST_VERSION_WITH_REBALANCE_TIMEOUT
        else request.session_timeout_ms,
        needs_known_id=context.version >= _FIRST_VERSION_THAT_JOINS_TWICE,
        may_skip_assignment=context.version >= _FIRST_VERSION_THAT_SKIPS_ASSIGNMENT,
    )
    return ask_coordinator(
        context,
        Operation.READ,
        request.group_id,
        command,
        answer=partial(_joined, request=request, context=context),
        refuse=lambda code: _response(JoinReply(code, request.member_id or NO_MEMBER), context),
    )


def _joined(reply: JoinReply, request: JoinGroupRequest, context: Context) -> JoinGroupResponse:
    if reply.code is ErrorCode.NONE and request.reason:
        tell_reason("member joined", context, request.group_id, reply.member_id, request.reason)
    return _response(reply, context)


def _response(reply: JoinReply, context: Context) -> JoinGroupResponse:
    context.stats.failed(reply.code)
    protocol_name = reply.protocol_name
    if protocol_name is None and context.version < _FIRST_VERSION_WITH_NULL_PROTOCOL:
        protocol_name = ""
    return JoinGroupResponse(
        error_code=reply.code,
        generation_id=reply.generation_id,
        protocol_type=reply.protocol_type,
        protocol_name=protocol_name,
        leader=reply.leader,
        skip_assignment=reply.skip_assignment,
        member_id=reply.member_id,
        members=[
            JoinGroupResponseMember(each.member_id, each.group_instance_id, each.metadata) for each in reply.members
        ],
    )
