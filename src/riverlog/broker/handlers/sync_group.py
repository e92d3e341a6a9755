"""SyncGroup: a member of a classic group asks for its part; answered once the leader has shared out."""

from functools import partial
from typing import Final

from riverlog.broker.coordinator_requests import ask_coordinator
from riverlog.broker.requests.context import Context, HandlerResult
from riverlog.groups.commands import Sync, SyncReply
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_FIRST_VERSION_WITH_PROTOCOL: Final = 5


def sync_group(request: SyncGroupRequest, context: Context) -> HandlerResult[SyncGroupResponse]:
    """Ask the coordinator for the member's assignment, and hand in everybody's if this is the leader."""
    protocol_missing = request.protocol_type is None or request.protocol_name is None
    if protocol_missing and context.version >= _FIRST_VERSION_WITH_PROTOCOL:
        return _response(SyncReply(ErrorCode.INCONSISTENT_GROUP_PROTOCOL), context)
    command = Sync(
        request.group_id,
        request.member_id,
        request.generation_id,
        request.group_instance_id,
        request.protocol_type,
        request.protocol_name,
        {each.member_id: each.assignment for each in request.assignments},
    )
    return ask_coordinator(
        context,
        Operation.READ,
        request.group_id,
        command,
        answer=partial(_response, context=context),
        refuse=lambda code: SyncGroupResponse(error_code=_known_code(code)),
    )


def _known_code(code: ErrorCode) -> ErrorCode:
    """A coordinator that is loading has lost the rebalance, so that members begin anew; clients know no other code."""
    return ErrorCode.REBALANCE_IN_PROGRESS if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else code


def _response(reply: SyncReply, context: Context) -> SyncGroupResponse:
    context.stats.failed(reply.code)
    return SyncGroupResponse(
        error_code=reply.code,
        protocol_type=reply.protocol_type,
        protocol_name=reply.protocol_name,
        assignment=reply.assignment,
    )
