"""DeleteRecords: give up the records of a partition below an offset."""

from riverlog.broker.context import Context
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_OFFSET, Offset
from riverlog.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


def delete_records(request: DeleteRecordsRequest, context: Context) -> DeleteRecordsResponse:
    """Answer each partition on its own; readers see the new start at once."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name, partitions=[_result(topic.name, part, context) for part in topic.partitions]
            )
            for topic in request.topics
        ]
    )


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
