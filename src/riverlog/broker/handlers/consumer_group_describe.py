"""ConsumerGroupDescribe: consumer groups (KIP-848) and their members; each group is answered on its own."""

import asyncio
from collections.abc import Mapping
from typing import Final

from riverlog.broker.coordinator_requests import ask_group
from riverlog.broker.requests.context import Context, HandlerResult, Later
from riverlog.groups.commands import (
    DescribeConsumerGroups,
    DescribedConsumer,
    DescribedConsumerGroup,
)
from riverlog.groups.consumer.assignors.subscriber import Partitions
from riverlog.model.access import Operation, ResourceType
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

_CLASSIC_MEMBER: Final = 0
_CONSUMER_MEMBER: Final = 1


def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, context: Context
) -> HandlerResult[ConsumerGroupDescribeResponse]:
    """Ask the coordinator of each group."""
    asked = {
        group_id: ask_group(context, Operation.DESCRIBE, group_id, DescribeConsumerGroups((group_id,)))
        for group_id in dict.fromkeys(request.group_ids)
    }
    return Later(_response(asked, request, context)) if asked else ConsumerGroupDescribeResponse()


async def _response(
    asked: "Mapping[str, asyncio.Future[tuple[DescribedConsumerGroup, ...]]]",
    request: ConsumerGroupDescribeRequest,
    context: Context,
) -> ConsumerGroupDescribeResponse:
    await asyncio.wait(asked.values())
    return ConsumerGroupDescribeResponse(
        groups=[_described(group_id, reply, request, context) for group_id, reply in asked.items()]
    )


def _described(
    group_id: str,
    reply: "asyncio.Future[tuple[DescribedConsumerGroup, ...]]",
    request: ConsumerGroupDescribeRequest,
    context: Context,
) -> DescribedGroup:
    try:
        (group,) = reply.result()
        answer = _group(group, context)
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        return DescribedGroup(error_code=refusal.code, error_message=refusal.message, group_id=group_id)
    if request.include_authorized_operations:
        answer.authorized_operations = context.operations_allowed(ResourceType.GROUP, group_id)
    return answer


def _group(group: DescribedConsumerGroup, context: Context) -> DescribedGroup:
    return DescribedGroup(
        error_code=group.code,
        error_message=group.message,
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor_name,
        members=[_member(member, context) for member in group.members],
    )


def _member(member: DescribedConsumer, context: Context) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client.id,
        client_host=member.client.host,
        subscribed_topic_names=list(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(member.assignment, context),
        target_assignment=_assignment(member.target_assignment, context),
        member_type=_CLASSIC_MEMBER if member.is_classic else _CONSUMER_MEMBER,
    )


def _assignment(partitions: Partitions, context: Context) -> Assignment:
    """Name the topics; whoever may not see one of them does not see the group."""
    assignment = Assignment()
    for topic_id, indexes in partitions.items():
        topic = context.image.topic_by_id(topic_id)
        if topic is None:
            continue
        if not context.allows_on_topic(Operation.DESCRIBE, topic.name):
            raise Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The group reads topics that may not be seen.")
        assignment.topic_partitions.append(TopicPartitions(topic_id, topic.name, sorted(indexes)))
    return assignment
