"""DescribeBatches: how far an incarnation of a pipeline has come."""

from riverlog.broker.requests.context import Context
from riverlog.model.access import Operation, ResourceType
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.transactions.commands import BatchesReply, DescribeBatches
from riverlog.transactions.incarnations import NO_BATCH
from riverlog.wire.messages.describe_batches import DescribeBatchesRequest, DescribeBatchesResponse


async def describe_batches(request: DescribeBatchesRequest, context: Context) -> DescribeBatchesResponse:
    """Ask the coordinator."""
    try:
        reply = await _ask(request, context)
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        return DescribeBatchesResponse(error_code=refusal.code)
    return DescribeBatchesResponse(
        committed_batch=reply.committed,
        open_batch=NO_BATCH if reply.open_batch is None else reply.open_batch,
        marker=reply.marker,
    )


async def _ask(request: DescribeBatchesRequest, context: Context) -> BatchesReply:
    transactional_id = request.transactional_id
    if not context.allows(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise Refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, f"Not allowed to see {transactional_id!r}.")
    command = DescribeBatches(transactional_id, request.incarnation)
    reply = await context.services.transactions.submit(transactional_id, command)
    if reply.code is not ErrorCode.NONE:
        raise Refusal(reply.code, f"There is no transactional id {transactional_id!r}.")
    return reply
