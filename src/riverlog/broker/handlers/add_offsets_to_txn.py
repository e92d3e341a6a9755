"""AddOffsetsToTxn: a group's partition of `__consumer_offsets` is taken into a transaction."""

from typing import Final

from riverlog.broker.coordinator_requests import check_transactional_id, known_since
from riverlog.broker.requests.context import Context
from riverlog.model.access import Operation, ResourceType
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import ProducerEpoch, ProducerId
from riverlog.model.transactions import ProducerIdentity
from riverlog.transactions.commands import AddPartitions
from riverlog.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

_FIRST_VERSION_WITH_FENCED: Final = 2


async def add_offsets_to_txn(request: AddOffsetsToTxnRequest, context: Context) -> AddOffsetsToTxnResponse:
    """Add the partition in which the group's offsets are kept; it may be the first to need one."""
    try:
        code = await _add(request, context)
    except Refusal as refusal:
        code = refusal.code
    code = known_since(_FIRST_VERSION_WITH_FENCED, code, context)
    context.stats.failed(code)
    return AddOffsetsToTxnResponse(error_code=code)


async def _add(request: AddOffsetsToTxnRequest, context: Context) -> ErrorCode:
    check_transactional_id(context, request.transactional_id)
    if not context.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, f"Not allowed to use the group {request.group_id!r}.")
    services = context.services
    await services.groups.ensure_topic()
    producer = ProducerIdentity(ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch))
    partition = services.groups.partition_of(request.group_id)
    command = AddPartitions(request.transactional_id, producer, (partition,))
    (code,) = (await services.transactions.submit(request.transactional_id, command)).codes
    return code
