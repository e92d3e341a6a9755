"""JoinTransaction: an attempt of a task becomes a member of a batch, and learns whom to write as."""

from riverlog.broker.coordinator_requests import check_transactional_id
from riverlog.broker.requests.context import Context
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import ProducerEpoch, ProducerId
from riverlog.model.limits import INCARNATION_LENGTH_MAX
from riverlog.model.transactions import ProducerIdentity
from riverlog.transactions.commands import JoinBatch
from riverlog.transactions.incarnations import BatchName
from riverlog.wire.messages.join_transaction import JoinTransactionRequest, JoinTransactionResponse


async def join_transaction(request: JoinTransactionRequest, context: Context) -> JoinTransactionResponse:
    """Assign a producer to the member of a shared transaction."""
    try:
        check_transactional_id(context, request.transactional_id)
        if request.task < 0 or request.attempt < 0:
            raise Refusal(ErrorCode.INVALID_REQUEST, "Tasks and attempts are counted from 0.")
        command = JoinBatch(
            request.transactional_id,
            ProducerIdentity(ProducerId(request.owner_id), ProducerEpoch(request.owner_epoch)),
            batch_of(request.incarnation, request.batch),
            request.task,
            request.attempt,
        )
        reply = await context.services.transactions.decide(command)
        code, producer = reply.code, reply.producer
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        return JoinTransactionResponse(error_code=refusal.code)
    context.stats.failed(code)
    return JoinTransactionResponse(error_code=code, producer_id=producer.id, producer_epoch=producer.epoch)


def batch_of(incarnation: str, number: int) -> BatchName:
    """Return the batch's name, or refuse one that is none."""
    if not 0 < len(incarnation) <= INCARNATION_LENGTH_MAX:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"An incarnation has 1 to {INCARNATION_LENGTH_MAX} characters.")
    if number < 0:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Batches are counted from 0.")
    return BatchName(incarnation, number)
