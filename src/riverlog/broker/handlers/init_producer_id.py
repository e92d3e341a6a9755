"""InitProducerId: an id for an idempotent producer, new each time; with a transactional id, the right to write with it.

Whoever had that right before has lost it, and a transaction that it left open is aborted before the answer comes.
"""

from typing import Final

from riverlog.broker.coordinator_requests import check_transactional_id, known_since
from riverlog.broker.requests.context import Context
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_PRODUCER, NO_PRODUCER_EPOCH, ProducerEpoch, ProducerId
from riverlog.model.transactions import ProducerIdentity
from riverlog.transactions.commands import InitProducer
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_FIRST_VERSION_WITH_FENCED: Final = 4


async def init_producer_id(request: InitProducerIdRequest, context: Context) -> InitProducerIdResponse:
    """Allocate an id that nobody had before, or the next epoch of a transactional id."""
    try:
        if request.transactional_id is None:
            producer = await _new_producer(context)
        else:
            producer = await _next_producer(request.transactional_id, request, context)
    except Refusal as refusal:
        code = known_since(_FIRST_VERSION_WITH_FENCED, refusal.code, context)
        context.stats.failed(code)
        return InitProducerIdResponse(error_code=code, producer_epoch=NO_PRODUCER_EPOCH)
    return InitProducerIdResponse(producer_id=producer.id, producer_epoch=producer.epoch)


async def _new_producer(context: Context) -> ProducerIdentity:
    """A producer that lost its state simply asks again."""
    if not context.allows_on_cluster(Operation.IDEMPOTENT_WRITE):
        raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Not allowed to write with an id.")
    return ProducerIdentity(await context.services.producer_ids.next(), ProducerEpoch(0))


async def _next_producer(transactional_id: str, request: InitProducerIdRequest, context: Context) -> ProducerIdentity:
    check_transactional_id(context, transactional_id)
    command = InitProducer(transactional_id, request.transaction_timeout_ms, _expected(request))
    reply = await context.services.transactions.decide(command)
    if reply.code is not ErrorCode.NONE:
        raise Refusal(reply.code, f"{transactional_id!r} cannot be written with now.")
    return reply.producer


def _expected(request: InitProducerIdRequest) -> ProducerIdentity | None:
    """Return the producer that the sender is already, if it says so."""
    if (request.producer_id == NO_PRODUCER) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise Refusal(ErrorCode.INVALID_REQUEST, "A producer id comes with its epoch.")
    if request.producer_id == NO_PRODUCER:
        return None
    return ProducerIdentity(ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch))
