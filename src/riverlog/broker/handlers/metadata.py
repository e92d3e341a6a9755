"""Metadata: the brokers, and the topics that were asked for; a missing topic is created where that is allowed."""

import asyncio
from collections.abc import Iterable
from typing import Final

from riverlog.broker.limits import REQUEST_PORTION
from riverlog.broker.requests.availability import Availability
from riverlog.broker.requests.context import Context
from riverlog.metadata.commands.topics import TopicCreation, check_topic_name
from riverlog.metadata.image import PartitionImage, TopicImage
from riverlog.model.access import CLUSTER, Operation, ResourceType
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_TOPIC_ID
from riverlog.wire.messages.metadata import (
    OPERATIONS_NOT_ASKED_FOR,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

_FIRST_VERSION_WITH_LISTENERS: Final = 6
"""From this version on clients are told that a leader is there, but not on their listener."""
_FIRST_VERSION_THAT_FINDS_BY_ID: Final = 12


async def metadata(request: MetadataRequest, context: Context) -> MetadataResponse:
    """Describe the cluster; wait only where a topic has to be created first."""
    everything = request.topics is None or (context.version == 0 and not request.topics)
    if everything:
        topics = await _all_topics(request, context)
    elif context.version < _FIRST_VERSION_THAT_FINDS_BY_ID and any(map(_asked_by_id, request.topics or [])):
        topics = [_refused(each, context) for each in request.topics or []]
    else:
        asked = request.topics or []
        refused = await _create_missing(asked, request, context)
        availability = Availability(context)
        topics = [_find(each, refused, request, context, availability) for each in asked]
    availability = Availability(context)
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
            for broker, endpoint in availability.brokers()
        ],
        cluster_id=context.services.cluster_id,
        controller_id=availability.controller_id,
        topics=topics,
        cluster_authorized_operations=context.operations_allowed(ResourceType.CLUSTER, CLUSTER)
        if request.include_cluster_authorized_operations
        else OPERATIONS_NOT_ASKED_FOR,
    )


def _asked_by_id(asked: MetadataRequestTopic) -> bool:
    """Return whether a topic is asked for by its id; versions 10 and 11 have the field, but need names."""
    return asked.name is None or asked.topic_id != NO_TOPIC_ID


def _refused(asked: MetadataRequestTopic, context: Context) -> MetadataResponseTopic:
    context.stats.failed(ErrorCode.INVALID_REQUEST)
    return MetadataResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=asked.name or "", topic_id=asked.topic_id)


async def _all_topics(request: MetadataRequest, context: Context) -> list[MetadataResponseTopic]:
    """Describe every topic that the client may see, and let others have their turn in between."""
    availability, topics = Availability(context), list[MetadataResponseTopic]()
    left = REQUEST_PORTION
    for topic in context.image.all_topics():
        if _visible(topic, context):
            topics.append(_topic(topic, request, context, availability))
            left -= topic.partition_count
        left -= 1
        if left <= 0:
            left = REQUEST_PORTION
            await asyncio.sleep(0)
    return topics


async def _create_missing(
    asked: Iterable[MetadataRequestTopic], request: MetadataRequest, context: Context
) -> dict[str, ErrorCode]:
    """Create the named topics that do not exist yet, if client and node both want that; tell which were refused."""
    if not (request.allow_auto_topic_creation and context.services.metadata.settings.auto_create_topics_enable):
        return {}
    names = dict.fromkeys(each.name for each in asked if each.name)
    missing = [name for name in names if context.image.topic(name) is None and _may_create(name, context)]
    services = context.services
    refused: dict[str, ErrorCode] = {}
    for coordinators in (services.groups, services.transactions):
        if coordinators.TOPIC in missing:  # it has settings of its own
            missing.remove(coordinators.TOPIC)
            try:
                await coordinators.ensure_topic()
            except Refusal as refusal:
                refused[coordinators.TOPIC] = refusal.code
    if not missing:
        return refused
    new = tuple(TopicCreation(name, services.new_topic_id()) for name in missing)
    try:
        outcomes = await services.requests.create_topics(new)
    except Refusal as refusal:
        return refused | dict.fromkeys(missing, refusal.code)
    created = zip(missing, outcomes, strict=True)
    return refused | {name: outcome.code for name, outcome in created if outcome.code is not ErrorCode.NONE}


def _find(
    asked: MetadataRequestTopic,
    refused: dict[str, ErrorCode],
    request: MetadataRequest,
    context: Context,
    availability: Availability,
) -> MetadataResponseTopic:
    image = context.image
    by_id = asked.topic_id != NO_TOPIC_ID
    topic = image.topic_by_id(asked.topic_id) if by_id else image.topic(asked.name or "")
    if topic is not None and not context.allows_on_topic(Operation.DESCRIBE, topic.name):
        code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif topic is not None:
        return _topic(topic, request, context, availability)
    elif by_id:
        code = ErrorCode.UNKNOWN_TOPIC_ID
    elif not context.allows_on_topic(Operation.DESCRIBE, asked.name or ""):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    else:
        code = _unknown(asked.name or "", refused)
    context.stats.failed(code)
    return MetadataResponseTopic(error_code=code, name=None if by_id else asked.name or "", topic_id=asked.topic_id)


def _unknown(name: str, refused: dict[str, ErrorCode]) -> ErrorCode:
    """Return why a topic that was asked for is not there; a race with its creator is no reason to complain."""
    try:
        check_topic_name(name)
    except Refusal as refusal:
        return refusal.code
    code = refused.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if code is ErrorCode.TOPIC_ALREADY_EXISTS:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return code


def _topic(
    topic: TopicImage, request: MetadataRequest, context: Context, availability: Availability
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=[_partition(topic, partition, context.version, availability) for partition in topic.partitions],
        topic_authorized_operations=context.operations_allowed(ResourceType.TOPIC, topic.name)
        if request.include_topic_authorized_operations
        else OPERATIONS_NOT_ASKED_FOR,
    )


def _partition(
    topic: TopicImage, partition: PartitionImage, version: int, availability: Availability
) -> MetadataResponsePartition:
    leader, code = availability.leader(topic, partition)
    if code is ErrorCode.LISTENER_NOT_FOUND and version < _FIRST_VERSION_WITH_LISTENERS:
        code = ErrorCode.LEADER_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=code,
        partition_index=partition.index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=availability.offline_replicas(topic, partition),
    )


def _visible(topic: TopicImage, context: Context) -> bool:
    return context.allows_on_topic(Operation.DESCRIBE, topic.name)


def _may_create(name: str, context: Context) -> bool:
    return context.allows_on_cluster(Operation.CREATE) or context.allows_on_topic(Operation.CREATE, name)
