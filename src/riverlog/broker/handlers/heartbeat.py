"""Heartbeat: a member of a classic group is still there."""

from functools import partial

from riverlog.broker.coordinator_requests import ask_coordinator
from riverlog.broker.requests.context import Context, HandlerResult
from riverlog.groups.commands import Heartbeat
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def heartbeat(request: HeartbeatRequest, context: Context) -> HandlerResult[HeartbeatResponse]:
    """Renew the member's session; the response says whether it must join again."""
    command = Heartbeat(request.group_id, request.member_id, request.generation_id, request.group_instance_id)
    return ask_coordinator(
        context,
        Operation.READ,
        request.group_id,
        command,
        answer=partial(_response, context=context),
        refuse=lambda code: HeartbeatResponse(error_code=_known_code(code)),
    )


def _known_code(code: ErrorCode) -> ErrorCode:
    """While the coordinator is loading everybody counts as alive: clients take any code but a few for the end."""
    return ErrorCode.NONE if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else code


def _response(code: ErrorCode, context: Context) -> HeartbeatResponse:
    context.stats.failed(code)
    return HeartbeatResponse(error_code=code)
