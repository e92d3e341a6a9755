"""DescribeTopicPartitions: topics by name, a page of partitions at a time."""

from collections.abc import Iterator

from riverlog.broker.requests.availability import Availability
from riverlog.broker.requests.context import Context
from riverlog.broker.requests.portions import in_turns
from riverlog.metadata.image import PartitionImage, TopicImage
from riverlog.model.access import Operation, ResourceType
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


async def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, context: Context
) -> DescribeTopicPartitionsResponse:
    """Fill a page in the order of names and partitions, from the cursor on; say where the next page begins."""
    limit = context.services.metadata.settings.max_request_partition_size_limit
    room = min(max(request.response_partition_limit, 1), limit)
    response = DescribeTopicPartitionsResponse()
    availability, cursor = Availability(context), request.cursor
    names = {topic.name for topic in request.topics}
    if cursor is not None and (cursor.partition_index < 0 or (names and cursor.topic_name not in names)):
        context.stats.failed(ErrorCode.INVALID_REQUEST)
        refused = (DescribeTopicPartitionsResponseTopic(ErrorCode.INVALID_REQUEST, name) for name in sorted(names))
        return DescribeTopicPartitionsResponse(topics=list(refused))
    async for name, topic in in_turns(_asked_for(request, context)):
        if topic is None:
            response.topics.append(_missing(name, context))
            continue
        resumes = cursor is not None and cursor.topic_name == name
        first = cursor.partition_index if cursor is not None and resumes else 0
        if room == 0 and first < topic.partition_count:
            response.next_cursor = Cursor(topic_name=name, partition_index=first)
            break
        upto = min(first + room, topic.partition_count)
        response.topics.append(_topic(topic, range(first, upto), context, availability))
        room -= max(upto - first, 0)
        if upto < topic.partition_count:
            response.next_cursor = Cursor(topic_name=name, partition_index=upto)
            break
    return response


def _asked_for(request: DescribeTopicPartitionsRequest, context: Context) -> Iterator[tuple[str, TopicImage | None]]:
    """Return the topics of this page and those behind it; None for one that is not there or may not be seen."""
    start = request.cursor.topic_name if request.cursor is not None else ""
    if not request.topics:
        visible = (topic for topic in context.image.all_topics() if _visible(topic.name, context))
        yield from ((topic.name, topic) for topic in visible if topic.name >= start)
        return
    for name in sorted({topic.name for topic in request.topics if topic.name >= start}):
        yield name, context.image.topic(name) if _visible(name, context) else None


def _visible(name: str, context: Context) -> bool:
    return context.allows_on_topic(Operation.DESCRIBE, name)


def _missing(name: str, context: Context) -> DescribeTopicPartitionsResponseTopic:
    allowed = _visible(name, context)
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    context.stats.failed(code)
    return DescribeTopicPartitionsResponseTopic(error_code=code, name=name)


def _topic(
    topic: TopicImage, page: range, context: Context, availability: Availability
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=[_partition(topic, topic.partition(index), availability) for index in page],
        topic_authorized_operations=context.operations_allowed(ResourceType.TOPIC, topic.name),
    )


def _partition(
    topic: TopicImage, partition: PartitionImage, availability: Availability
) -> DescribeTopicPartitionsResponsePartition:
    leader, code = availability.leader(topic, partition)
    return DescribeTopicPartitionsResponsePartition(
        error_code=code,
        partition_index=partition.index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.rare.eligible_leader_replicas),
        last_known_elr=list(partition.rare.last_known_elr),
        offline_replicas=availability.offline_replicas(topic, partition),
    )
