"""DeleteRecords: give up the records of a partition below an offset, for good.

With `durability=fsync` the answer waits until the new start is on the medium: what was said to be deleted does not
come back after a crash.
"""

from riverlog.broker.requests.context import Context, HandlerResult, Later
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_OFFSET, Offset, TopicPartition
from riverlog.model.settings import Durability
from riverlog.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


def delete_records(request: DeleteRecordsRequest, context: Context) -> HandlerResult[DeleteRecordsResponse]:
    """Answer each partition on its own; readers see the new start at once."""
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name, partitions=[_result(topic.name, part, context) for part in topic.partitions]
            )
            for topic in request.topics
        ]
    )
    durable = any(
        context.services.metadata.topic_config(topic.name).durability is Durability.FSYNC for topic in request.topics
    )
    return Later(_written_down(response, context)) if durable else response


async def _written_down(response: DeleteRecordsResponse, context: Context) -> DeleteRecordsResponse:
    services, metadata = context.services, context.services.metadata
    were = {topic.name: metadata.image.topic(topic.name) for topic in response.topics}
    written = await services.checkpoints.write()
    for topic in response.topics:
        was, now = were[topic.name], metadata.image.topic(topic.name)
        is_there = was is not None and now is not None and was.id == now.id
        for result in topic.partitions:
            directory = services.registry.directory_of.get(TopicPartition(topic.name, result.partition_index))
            if result.error_code == ErrorCode.NONE and (directory not in written or not is_there):
                code = ErrorCode.KAFKA_STORAGE_ERROR if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                context.stats.failed(code)
                result.low_watermark, result.error_code = NO_OFFSET, code
    return response


def _result(topic: str, part: DeleteRecordsPartition, context: Context) -> DeleteRecordsPartitionResult:
    try:
        low_watermark = _delete(topic, part, context)
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        return DeleteRecordsPartitionResult(
            partition_index=part.partition_index, low_watermark=NO_OFFSET, error_code=refusal.code
        )
    return DeleteRecordsPartitionResult(partition_index=part.partition_index, low_watermark=low_watermark)


def _delete(topic: str, part: DeleteRecordsPartition, context: Context) -> Offset:
    if not context.allows_on_topic(Operation.DELETE, topic):
        raise Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"Not allowed to delete records of {topic!r}.")
    known = context.image.topic(topic)
    if known is not None and known.is_internal:
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} belongs to the cluster itself.")
    partition = context.services.replicas.get(topic, part.partition_index)
    if partition is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {part.partition_index} of {topic}.")
    if not partition.log.config.cleanup_delete and partition.log.config.cleanup_compact:
        raise Refusal(ErrorCode.POLICY_VIOLATION, f"{topic} is compacted; its records are deleted by their keys.")
    if part.offset < NO_OFFSET:
        raise Refusal(ErrorCode.OFFSET_OUT_OF_RANGE, f"{part.offset} is not an offset.")
    return partition.delete_records(Offset(part.offset))
