"""InitProducerId: an id for an idempotent producer, new each time."""

from riverlog.broker.context import Context
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


async def init_producer_id(request: InitProducerIdRequest, context: Context) -> InitProducerIdResponse:
    """Give out an id that nobody had before; a producer that lost its state simply asks again."""
    try:
        _check(request, context)
        producer_id = await context.services.metadata.next_producer_id()
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        return InitProducerIdResponse(error_code=refusal.code)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _check(request: InitProducerIdRequest, context: Context) -> None:
    if request.transactional_id is not None:
        # Fatal for every client; the errors of coordinators would make it ask for ever.
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION, "This node does not offer transactions.")
    if not context.allows_on_cluster(Operation.IDEMPOTENT_WRITE):
        raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Not allowed to write with an id.")
