"""AddOffsetsToTxn: a group's partition of `__consumer_offsets` is taken into a transaction."""

from typing import Final

from riverlog.broker.context import Answer, Context
from riverlog.broker.coordination import known_since, submit_in_transaction, when_decided
from riverlog.model.access import Operation, ResourceType
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import ProducerEpoch, ProducerId
from riverlog.model.transactions import Producer
from riverlog.transactions.commands import AddPartitions, PartitionsReply
from riverlog.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

_FIRST_VERSION_WITH_FENCED: Final = 2


def add_offsets_to_txn(request: AddOffsetsToTxnRequest, context: Context) -> Answer[AddOffsetsToTxnResponse]:
    """Let the coordinator add the partition in which the group's offsets are kept."""
    try:
        if not context.allows(Operation.READ, ResourceType.GROUP, request.group_id):
            raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, f"Not allowed to use the group {request.group_id!r}.")
        partition = context.services.groups.partition_of(request.group_id)
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        return AddOffsetsToTxnResponse(error_code=refusal.code)
    producer = Producer(ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch))

    def answer(reply: PartitionsReply) -> AddOffsetsToTxnResponse:
        code = known_since(_FIRST_VERSION_WITH_FENCED, reply.codes[0], context)
        if code is not ErrorCode.NONE:
            context.stats.failed(code)
        return AddOffsetsToTxnResponse(error_code=code)

    return when_decided(
        submit_in_transaction(context, AddPartitions(request.transactional_id, producer, (partition,))),
        context,
        answer=answer,
        refuse=lambda code: AddOffsetsToTxnResponse(error_code=code),
    )
