"""DescribeGroups: classic groups and their members; each group is answered on its own."""

import asyncio
from collections.abc import Mapping
from typing import Final

from riverlog.broker.coordinator_requests import ask_group
from riverlog.broker.requests.context import Context, HandlerResult, Later
from riverlog.groups.commands import DescribedGroup, DescribeGroups
from riverlog.model.access import Operation, ResourceType
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.wire.messages import describe_groups as wire
from riverlog.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from riverlog.wire.messages.metadata import OPERATIONS_NOT_ASKED_FOR

_FIRST_VERSION_THAT_KNOWS_MISSING_GROUPS: Final = 6


def describe_groups(request: DescribeGroupsRequest, context: Context) -> HandlerResult[DescribeGroupsResponse]:
    """Ask the coordinator of each group."""
    asked = {
        group_id: ask_group(context, Operation.DESCRIBE, group_id, DescribeGroups((group_id,)))
        for group_id in dict.fromkeys(request.groups)
    }
    return Later(_response(asked, request, context)) if asked else DescribeGroupsResponse()


async def _response(
    asked: "Mapping[str, asyncio.Future[tuple[DescribedGroup, ...]]]", request: DescribeGroupsRequest, context: Context
) -> DescribeGroupsResponse:
    await asyncio.wait(asked.values())
    return DescribeGroupsResponse(
        groups=[_described(group_id, asked[group_id], request, context) for group_id in request.groups]
    )


def _described(
    group_id: str, reply: "asyncio.Future[tuple[DescribedGroup, ...]]", request: DescribeGroupsRequest, context: Context
) -> wire.DescribedGroup:
    try:
        (group,) = reply.result()
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        return wire.DescribedGroup(error_code=refusal.code, error_message=refusal.message, group_id=group_id)
    answer = _group(group)
    if context.version < _FIRST_VERSION_THAT_KNOWS_MISSING_GROUPS and answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        answer.error_code = ErrorCode.NONE  # that a group is Dead says the same
    if request.include_authorized_operations:
        answer.authorized_operations = context.operations_allowed(ResourceType.GROUP, group_id)
    return answer


def _group(group: DescribedGroup) -> wire.DescribedGroup:
    return wire.DescribedGroup(
        error_code=group.code,
        error_message=group.message,
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_name,
        members=[
            wire.DescribedGroupMember(
                member.member_id,
                member.group_instance_id,
                member.client.id,
                member.client.host,
                member.metadata,
                member.assignment,
            )
            for member in group.members
        ],
        authorized_operations=OPERATIONS_NOT_ASKED_FOR,
    )
