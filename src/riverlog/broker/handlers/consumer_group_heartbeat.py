"""ConsumerGroupHeartbeat: all that a member of a consumer group (KIP-848) has to say."""

from functools import partial
from typing import Final
from uuid import UUID

from riverlog.broker.coordinator_requests import ask_coordinator, client_of
from riverlog.broker.requests.context import Context, HandlerResult
from riverlog.groups.commands import ConsumerHeartbeat, ConsumerHeartbeatReply
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

_FIRST_VERSION_WITH_OWN_IDS: Final = 1


def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, context: Context
) -> HandlerResult[ConsumerGroupHeartbeatResponse]:
    """Report the member's state to the coordinator; the response says what is to change."""
    names = request.subscribed_topic_names
    if names and not all(context.allows_on_topic(Operation.DESCRIBE, name) for name in names):
        context.stats.failed(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    owned = request.topic_partitions
    command = ConsumerHeartbeat(
        request.group_id,
        client_of(context),
        UUID(int=context.services.random.getrandbits(128), version=4),
        request.member_id,
        request.member_epoch,
        request.instance_id,
        request.rack_id,
        request.rebalance_timeout_ms,
        None if names is None else tuple(names),
        request.subscribed_topic_regex,
        request.server_assignor,
        None if owned is None else {each.topic_id: frozenset(each.partitions) for each in owned},
        brings_its_id=context.version >= _FIRST_VERSION_WITH_OWN_IDS,
    )
    return ask_coordinator(
        context,
        Operation.READ,
        request.group_id,
        command,
        answer=partial(_response, context=context),
        refuse=lambda code: ConsumerGroupHeartbeatResponse(error_code=code),
    )


def _response(reply: ConsumerHeartbeatReply, context: Context) -> ConsumerGroupHeartbeatResponse:
    context.stats.failed(reply.code)
    assignment = None
    if reply.assignment is not None:
        assignment = Assignment([TopicPartitions(topic, sorted(parts)) for topic, parts in reply.assignment.items()])
    return ConsumerGroupHeartbeatResponse(
        error_code=reply.code,
        error_message=reply.message,
        member_id=reply.member_id,
        member_epoch=reply.member_epoch,
        heartbeat_interval_ms=reply.heartbeat_interval_ms,
        assignment=assignment,
    )
