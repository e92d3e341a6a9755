"""OffsetCommit: how far a group has come; each partition is answered on its own."""

from typing import Final

from riverlog.broker.coordinator_requests import ask_coordinator, offset_to_commit, refused_commit
from riverlog.broker.requests.context import Context, HandlerResult
from riverlog.groups.commands import CodesReply, CommitOffsets, OffsetToCommit
from riverlog.metadata.image import TopicImage
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_FIRST_VERSION_THAT_KNOWS_MISSING_GROUPS: Final = 9
_FIRST_VERSION_WITH_TOPIC_IDS: Final = 10


def offset_commit(request: OffsetCommitRequest, context: Context) -> HandlerResult[OffsetCommitResponse]:
    """Ask the coordinator to remember the offsets of partitions that exist and may be read."""
    response = OffsetCommitResponse()
    offsets: list[OffsetToCommit] = []
    asked: list[OffsetCommitResponsePartition] = []
    for topic in request.topics:
        code, known = _find(topic, context)
        answers = [OffsetCommitResponsePartition(each.partition_index, code) for each in topic.partitions]
        response.topics.append(OffsetCommitResponseTopic(topic.topic_id, topic.name, answers))
        if known is None:
            context.stats.failed(code)
            continue
        for each, answer in zip(topic.partitions, answers, strict=True):
            if not 0 <= each.partition_index < known.partition_count:
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                context.stats.failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                continue
            asked.append(answer)
            offsets.append(offset_to_commit(known, each))

    def decided(reply: CodesReply) -> OffsetCommitResponse:
        for answer, code in zip(asked, reply.codes, strict=True):
            answer.error_code = code
            context.stats.failed(code)
        return response

    if not offsets:
        return response
    command = CommitOffsets(
        request.group_id,
        tuple(offsets),
        request.member_id,
        request.generation_id_or_member_epoch,
        request.group_instance_id,
        request.retention_time_ms,
        knows_missing_groups=context.version >= _FIRST_VERSION_THAT_KNOWS_MISSING_GROUPS,
    )
    return ask_coordinator(
        context,
        Operation.READ,
        request.group_id,
        command,
        answer=decided,
        refuse=lambda code: decided(CodesReply(codes=(refused_commit(code),) * len(asked))),
    )


def _find(asked: OffsetCommitRequestTopic, context: Context) -> tuple[ErrorCode, TopicImage | None]:
    """Return the topic that is meant, or the reason why nothing can be committed for it."""
    by_id = context.version >= _FIRST_VERSION_WITH_TOPIC_IDS
    topic = context.image.topic_by_id(asked.topic_id) if by_id else context.image.topic(asked.name)
    if by_id and topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID, None
    if not context.allows_on_topic(Operation.READ, topic.name if topic is not None else asked.name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED, None
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    return ErrorCode.NONE, topic
