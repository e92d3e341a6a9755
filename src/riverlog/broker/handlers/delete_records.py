"""DeleteRecords: give up the records of a partition below an offset, for good.

With `durability=fsync` the answer waits until the new start is on the medium: what was said to be deleted does not
come back after a crash.
"""

from riverlog.broker.requests.context import Context, HandlerResult, Later
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_OFFSET, Offset
from riverlog.model.settings import Durability
from riverlog.partitions.partition import Partition
from riverlog.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


def delete_records(request: DeleteRecordsRequest, context: Context) -> HandlerResult[DeleteRecordsResponse]:
    """Answer each partition on its own; readers see the new start at once."""
    response = DeleteRecordsResponse()
    deleted: list[tuple[DeleteRecordsPartitionResult, Partition]] = []
    for topic in request.topics:
        answer = DeleteRecordsTopicResult(name=topic.name)
        response.topics.append(answer)
        for part in topic.partitions:
            result = DeleteRecordsPartitionResult(partition_index=part.partition_index)
            answer.partitions.append(result)
            try:
                partition = _find(topic.name, part, context)
                result.low_watermark = partition.delete_records(Offset(part.offset))
            except Refusal as refusal:
                _refuse(result, refusal, context)
            else:
                deleted.append((result, partition))
    durable = any(partition.log.config.durability is Durability.FSYNC for _, partition in deleted)
    return Later(_written_down(response, deleted, context)) if durable else response


async def _written_down(
    response: DeleteRecordsResponse, deleted: list[tuple[DeleteRecordsPartitionResult, Partition]], context: Context
) -> DeleteRecordsResponse:
    written = await context.services.checkpoints.write()
    for result, partition in deleted:
        try:
            partition.check_here()
            if context.services.registry.directory_of.get(partition.name) not in written:
                raise Refusal(ErrorCode.KAFKA_STORAGE_ERROR, f"The new start of {partition.name} is not written down.")
        except Refusal as refusal:
            _refuse(result, refusal, context)
    return response


def _refuse(result: DeleteRecordsPartitionResult, refusal: Refusal, context: Context) -> None:
    context.stats.failed(refusal.code)
    result.low_watermark, result.error_code = NO_OFFSET, refusal.code


def _find(topic: str, part: DeleteRecordsPartition, context: Context) -> Partition:
    """Find a partition of which records may be deleted below this offset; Refusal says why not."""
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
    return partition
