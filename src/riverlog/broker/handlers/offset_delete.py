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
    """Ask the coordinator about the topics that exist and may be read."""
    response = OffsetDeleteResponse()
    partitions: list[TopicPartition] = []
    asked: list[OffsetDeleteResponsePartition] = []
    for topic in request.topics:
        code = _why_not(topic.name, context)
        answers = [OffsetDeleteResponsePartition(each.partition_index, code) for each in topic.partitions]
        response.topics.append(OffsetDeleteResponseTopic(topic.name, answers))
        if code is not ErrorCode.NONE:
            context.stats.failed(code)
            continue
        asked += answers
        partitions += [TopicPartition(topic.name, each.partition_index) for each in topic.partitions]

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


def _why_not(topic: str, context: Context) -> ErrorCode:
    if not context.allows_on_topic(Operation.READ, topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE if context.image.topic(topic) is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
