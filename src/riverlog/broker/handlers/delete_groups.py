"""DeleteGroups: forget groups without members; each is answered on its own."""

import asyncio
from collections.abc import Mapping

from riverlog.broker.coordinator_requests import ask_group
from riverlog.broker.requests.context import Context, HandlerResult, Later
from riverlog.groups.commands import CodesReply, DeleteGroups
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


def delete_groups(request: DeleteGroupsRequest, context: Context) -> HandlerResult[DeleteGroupsResponse]:
    """Ask the coordinator of each group."""
    asked = {
        group_id: ask_group(context, Operation.DELETE, group_id, DeleteGroups((group_id,)))
        for group_id in dict.fromkeys(request.groups_names)
    }
    return Later(_response(asked, context)) if asked else DeleteGroupsResponse()


async def _response(asked: "Mapping[str, asyncio.Future[CodesReply]]", context: Context) -> DeleteGroupsResponse:
    await asyncio.wait(asked.values())
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id, _code(reply, context)) for group_id, reply in asked.items()]
    )


def _code(reply: "asyncio.Future[CodesReply]", context: Context) -> ErrorCode:
    try:
        (code,) = reply.result().codes
    except Refusal as refusal:
        code = refusal.code
    context.stats.failed(code)
    return code
