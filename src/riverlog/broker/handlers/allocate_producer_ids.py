"""AllocateProducerIds: a broker takes a block of producer ids that no other broker has."""

from riverlog.broker.requests.context import Context
from riverlog.controller.limits import PRODUCER_ID_BLOCK
from riverlog.metadata.commands.producer_ids import AllocateProducerIds
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from riverlog.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


async def allocate_producer_ids(request: AllocateProducerIdsRequest, context: Context) -> AllocateProducerIdsResponse:
    """Have a block allocated for a broker of this epoch."""
    if not context.allows_on_cluster(Operation.CLUSTER_ACTION):
        return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, context)
    broker = context.image.brokers.get(NodeId(request.broker_id))
    if broker is None:
        return _refused(ErrorCode.BROKER_ID_NOT_REGISTERED, context)
    if broker.epoch != request.broker_epoch:
        return _refused(ErrorCode.STALE_BROKER_EPOCH, context)
    try:
        block = await context.services.controller.submit(AllocateProducerIds(broker.id, PRODUCER_ID_BLOCK))
    except Refusal as refusal:
        return _refused(refusal.code, context)
    return AllocateProducerIdsResponse(producer_id_start=block.first, producer_id_len=block.count)


def _refused(code: ErrorCode, context: Context) -> AllocateProducerIdsResponse:
    context.stats.failed(code)
    return AllocateProducerIdsResponse(error_code=code)
