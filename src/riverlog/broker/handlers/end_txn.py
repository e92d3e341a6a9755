"""EndTxn: a transaction is committed or aborted; the answer comes once that is decided and can no longer be lost.

From version 5 on each end brings the producer's next epoch (KIP-890), so that nothing that was sent before can reach a
later transaction.
"""

from functools import partial
from typing import Final

from riverlog.broker.coordinator_requests import ask_if_allowed, known_since, when_decided
from riverlog.broker.requests.context import Context, HandlerResult
from riverlog.model.ids import ProducerEpoch, ProducerId
from riverlog.model.transactions import ProducerIdentity, TransactionVersion
from riverlog.transactions.commands import EndTransaction, ProducerReply
from riverlog.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

_FIRST_VERSION_WITH_FENCED: Final = 2
_FIRST_VERSION_WITH_EPOCHS: Final = 5


def end_txn(request: EndTxnRequest, context: Context) -> HandlerResult[EndTxnResponse]:
    """End the transaction at its coordinator."""
    has_epochs = context.version >= _FIRST_VERSION_WITH_EPOCHS
    command = EndTransaction(
        request.transactional_id,
        ProducerIdentity(ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch)),
        request.committed,
        TransactionVersion.EPOCH_PER_TRANSACTION if has_epochs else TransactionVersion.CLASSIC,
    )

    def answer(reply: ProducerReply) -> EndTxnResponse:
        code = known_since(_FIRST_VERSION_WITH_FENCED, reply.code, context)
        context.stats.failed(code)
        return EndTxnResponse(error_code=code, producer_id=reply.producer.id, producer_epoch=reply.producer.epoch)

    return when_decided(
        ask_if_allowed(context, request.transactional_id, partial(context.services.transactions.decide, command)),
        context,
        answer=answer,
        refuse=lambda code: EndTxnResponse(error_code=code),
    )
