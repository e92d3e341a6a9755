"""ListGroups: all groups of this node that the client may see, by state and type if it wants."""

import asyncio

from riverlog.broker.requests.context import Context, HandlerResult, Later
from riverlog.groups.commands import ListedGroup, ListGroups
from riverlog.model.access import Operation, ResourceType
from riverlog.model.errors import Refusal
from riverlog.wire.messages import list_groups as wire
from riverlog.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def list_groups(request: ListGroupsRequest, context: Context) -> HandlerResult[ListGroupsResponse]:
    """Ask every coordinator; one that is still reading its log makes the client ask again."""
    # Folded here, once: every coordinator of a node is asked.
    states, types = (frozenset(map(str.lower, filters)) for filters in (request.states_filter, request.types_filter))
    command = ListGroups(states, types)
    asked = context.services.groups.submit_to_all(command)
    return Later(_response(asked, context)) if asked else ListGroupsResponse()


async def _response(asked: "list[asyncio.Future[tuple[ListedGroup, ...]]]", context: Context) -> ListGroupsResponse:
    await asyncio.wait(asked)
    try:
        found = [each for reply in asked for each in reply.result()]
    except Refusal as refusal:
        return _refused(refusal, context)
    sees_all = context.allows_on_cluster(Operation.DESCRIBE)
    return ListGroupsResponse(groups=[_listed(each) for each in found if sees_all or _visible(each, context)])


def _visible(group: ListedGroup, context: Context) -> bool:
    return context.allows(Operation.DESCRIBE, ResourceType.GROUP, group.group_id)


def _listed(group: ListedGroup) -> wire.ListedGroup:
    return wire.ListedGroup(group.group_id, group.protocol_type, group.state, group.type)


def _refused(refusal: Refusal, context: Context) -> ListGroupsResponse:
    context.stats.failed(refusal.code)
    return ListGroupsResponse(error_code=refusal.code)
