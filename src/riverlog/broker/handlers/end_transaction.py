"""EndTransaction: the owner of a batch decides about all of its members, and with them about offsets of a group.

The offsets are written by one more member, whom the node itself makes join: until the decision they are pending in the
group's partition, and the decision takes effect there as in any other.
"""

from typing import Final

from riverlog.broker.coordinator_requests import check_transactional_id, offset_to_commit
from riverlog.broker.handlers.join_transaction import batch_of
from riverlog.broker.limits import BATCH_MARKER_BYTES_MAX
from riverlog.broker.requests.context import Context
from riverlog.groups.commands import CommitOffsets, OffsetToCommit
from riverlog.model.access import Operation, ResourceType
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import ProducerEpoch, ProducerId
from riverlog.model.limits import MEMBERS_PER_BATCH_MAX
from riverlog.model.transactions import ProducerIdentity
from riverlog.transactions.commands import EndBatch, JoinBatch
from riverlog.transactions.states import NOBODY
from riverlog.wire.messages.end_transaction import EndTransactionRequest, EndTransactionResponse, EndTransactionTopic

OFFSETS_TASK: Final = -1
"""The task of the member that commits the offsets: no client joins as this one."""


async def end_transaction(request: EndTransactionRequest, context: Context) -> EndTransactionResponse:
    """Commit the offsets where there are some, then decide; whatever was done before a failure may be done again."""
    try:
        command = _command(request, context)
        if request.committed and request.group_id is not None:
            offsets = _offsets(request.topics, context)
            command = await _with_offsets(command, request.group_id, offsets, context)
        reply = await context.services.transactions.submit(command.transactional_id, command)
        if reply.code is not ErrorCode.NONE:
            raise _no(reply.code, command)
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        return EndTransactionResponse(error_code=refusal.code, error_message=refusal.message)
    return EndTransactionResponse()


def _command(request: EndTransactionRequest, context: Context) -> EndBatch:
    check_transactional_id(context, request.transactional_id)
    if len(request.members) > MEMBERS_PER_BATCH_MAX:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"A batch has at most {MEMBERS_PER_BATCH_MAX} members.")
    if len(request.marker) > BATCH_MARKER_BYTES_MAX:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"A marker has at most {BATCH_MARKER_BYTES_MAX} bytes.")
    return EndBatch(
        request.transactional_id,
        ProducerIdentity(ProducerId(request.owner_id), ProducerEpoch(request.owner_epoch)),
        batch_of(request.incarnation, request.batch),
        request.committed,
        tuple(
            ProducerIdentity(ProducerId(each.producer_id), ProducerEpoch(each.producer_epoch))
            for each in request.members
        ),
        bytes(request.marker),
    )


def _offsets(topics: list[EndTransactionTopic], context: Context) -> tuple[OffsetToCommit, ...]:
    """Return the offsets; one that cannot be committed keeps back the whole batch."""
    offsets: list[OffsetToCommit] = []
    for topic in topics:
        if not context.allows_on_topic(Operation.READ, topic.name):
            raise Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"Not allowed to read {topic.name!r}.")
        known = context.image.topic(topic.name)
        for each in topic.partitions:
            if known is None or not 0 <= each.partition_index < known.partition_count:
                raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no {topic.name}-{each.partition_index}.")
            offsets.append(offset_to_commit(known, each))
    return tuple(offsets)


async def _with_offsets(
    command: EndBatch, group_id: str, offsets: tuple[OffsetToCommit, ...], context: Context
) -> EndBatch:
    """Commit the offsets as one more member, and list it; nothing is left to do where the batch is committed."""
    if not context.allows(Operation.READ, ResourceType.GROUP, group_id):
        raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, f"Not allowed to use the group {group_id!r}.")
    if not offsets:
        return command
    services = context.services
    await services.groups.ensure_topic()
    join = JoinBatch(command.transactional_id, command.owner, command.batch, OFFSETS_TASK, 0, beside=command.members)
    joined = await services.transactions.decide(join)
    if joined.code is not ErrorCode.NONE:
        raise _no(joined.code, command)
    if joined.producer == NOBODY:
        return command
    commit = CommitOffsets(group_id, offsets, producer=joined.producer, needs_empty_group=True)
    reply = await services.transactional_offsets.commit_anywhere(command.transactional_id, commit)
    for code in reply.codes:
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            raise Refusal(
                code,
                f"Offsets of {group_id!r} cannot be committed: consumers are members of this group, and it belongs to "
                "them. Stop them, or give the pipeline another name.",
            )
        if code is not ErrorCode.NONE:
            raise Refusal(code, f"Offsets of {group_id!r} cannot be committed: {code.title}.")
    return EndBatch(
        command.transactional_id,
        command.owner,
        command.batch,
        command.committed,
        (*command.members, joined.producer),
        command.marker,
    )


def _no(code: ErrorCode, command: EndBatch) -> Refusal:
    return Refusal(
        code, f"Batch {command.batch.number} of {command.transactional_id!r} cannot be ended so: {code.title}."
    )
