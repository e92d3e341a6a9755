"""OffsetDelete: forget how far a group has come in partitions that it does not read any more."""

from riverlog.broker.context import Answer, Context
from riverlog.broker.coordination import ask_coordinator
from riverlog.groups.commands import DeleteOffsets, DeleteOffsetsReply
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def offset_delete(request: OffsetDeleteRequest, context: Context) -> Answer[OffsetDeleteResponse]:
    """Ask the coordinator about the partitions that exist and may be read."""
    response = OffsetDeleteResponse()
    partitions: list[TopicPartition] = []
    asked: list[OffsetDeleteResponsePartition] = []
    for topic in request.topics:
        answers = [OffsetDeleteResponsePartition(each.partition_index) for each in topic.partitions]
        response.topics.append(OffsetDeleteResponseTopic(topic.name, answers))
        for answer in answers:
            partition = TopicPartition(topic.name, answer.partition_index)
            answer.error_code = _why_not(partition, context)
            if answer.error_code is not ErrorCode.NONE:
                context.stats.failed(answer.error_code)
                continue
            asked.append(answer)
            partitions.append(partition)

    def decided(reply: DeleteOffsetsReply) -> OffsetDeleteResponse:
        if reply.code is not ErrorCode.NONE:
            context.stats.failed(reply.code)
            return OffsetDeleteResponse(error_code=reply.code)
        for answer, code in zip(asked, reply.codes, strict=True):
            answer.error_code = code
            if code is not ErrorCode.NONE:
                context.stats.failed(code)
        return response

    return ask_coordinator(
        context,
        Operation.DELETE,
        request.group_id,
        DeleteOffsets(request.group_id, tuple(partitions)),
        answer=decided,
        refuse=lambda code: OffsetDeleteResponse(error_code=code),
    )


def _why_not(partition: TopicPartition, context: Context) -> ErrorCode:
    if not context.allows_on_topic(Operation.READ, partition.topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = context.image.topic(partition.topic)
    exists = topic is not None and 0 <= partition.partition < topic.partition_count
    return ErrorCode.NONE if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
