"""TxnOffsetCommit: how far a group has come, if the transaction is committed; each partition is answered on its own."""

from typing import Final

from riverlog.broker.coordinator_requests import check_transactional_id, offset_to_commit, refused_commit
from riverlog.broker.requests.context import Context
from riverlog.groups.commands import CommitOffsets, OffsetToCommit
from riverlog.metadata.image import TopicImage
from riverlog.model.access import Operation, ResourceType
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import ProducerEpoch, ProducerId
from riverlog.model.transactions import ProducerIdentity
from riverlog.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_FIRST_VERSION_THAT_KNOWS_LOADING: Final = 2
_FIRST_VERSION_WITH_ABORTABLE: Final = 4
_FIRST_VERSION_THAT_ADDS: Final = 5


async def txn_offset_commit(request: TxnOffsetCommitRequest, context: Context) -> TxnOffsetCommitResponse:
    """Store offsets of partitions that exist and may be read, until the transaction ends."""
    response = TxnOffsetCommitResponse()
    offsets: list[OffsetToCommit] = []
    asked: list[TxnOffsetCommitResponsePartition] = []
    for topic in request.topics:
        code, known = _find(topic.name, context)
        answers = [TxnOffsetCommitResponsePartition(each.partition_index, code) for each in topic.partitions]
        response.topics.append(TxnOffsetCommitResponseTopic(topic.name, answers))
        for each, answer in zip(topic.partitions, answers, strict=True):
            if known is not None and 0 <= each.partition_index < known.partition_count:
                asked.append(answer)
                offsets.append(offset_to_commit(known, each))
            elif known is not None:
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    codes = await _commit(request, tuple(offsets), context) if offsets else ()
    for answer, code in zip(asked, codes, strict=True):
        answer.error_code = code
    _count_failures(response, context)
    return response


async def _commit(
    request: TxnOffsetCommitRequest, offsets: tuple[OffsetToCommit, ...], context: Context
) -> tuple[ErrorCode, ...]:
    command = CommitOffsets(
        request.group_id,
        offsets,
        request.member_id,
        request.generation_id,
        request.group_instance_id,
        producer=ProducerIdentity(ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch)),
        needs_empty_group=request.needs_empty_group,
    )
    try:
        check_transactional_id(context, request.transactional_id)
        if not context.allows(Operation.READ, ResourceType.GROUP, request.group_id):
            raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, f"Not allowed to use the group {request.group_id!r}.")
        reply = await context.services.transactional_offsets.commit(
            request.transactional_id,
            command,
            adds=context.version >= _FIRST_VERSION_THAT_ADDS,
            knows_abortable=context.version >= _FIRST_VERSION_WITH_ABORTABLE,
        )
    except Refusal as refusal:
        return (_known(refusal.code, context),) * len(offsets)
    return reply.codes


def _known(code: ErrorCode, context: Context) -> ErrorCode:
    """Clients from before version 2 end when they are told that a coordinator is loading (KAFKA-7296)."""
    is_loading = code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if is_loading and context.version < _FIRST_VERSION_THAT_KNOWS_LOADING:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return refused_commit(code)


def _find(name: str, context: Context) -> tuple[ErrorCode, TopicImage | None]:
    """Return the topic, or the reason why nothing can be committed for it."""
    if not context.allows_on_topic(Operation.READ, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED, None
    topic = context.image.topic(name)
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else ErrorCode.NONE, topic


def _count_failures(response: TxnOffsetCommitResponse, context: Context) -> None:
    for topic in response.topics:
        for each in topic.partitions:
            if each.error_code != ErrorCode.NONE:
                context.stats.failed(ErrorCode(each.error_code))
