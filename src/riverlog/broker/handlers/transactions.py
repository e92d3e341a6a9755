"""DescribeTransactions and ListTransactions: there are no transactions here yet, so none is found."""

from typing import Final

from riverlog.broker.context import Context
from riverlog.model.access import Operation, ResourceType
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from riverlog.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

_STATES: Final = frozenset(
    (
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    )
)


def describe_transactions(request: DescribeTransactionsRequest, context: Context) -> DescribeTransactionsResponse:
    """Find none of the ids."""
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionState(error_code=_why_not(each, context), transactional_id=each)
            for each in request.transactional_ids
        ]
    )


def list_transactions(request: ListTransactionsRequest, context: Context) -> ListTransactionsResponse:
    """List none, and name the states in the filter that do not exist."""
    return ListTransactionsResponse(
        unknown_state_filters=[state for state in request.state_filters if state not in _STATES]
    )


def _why_not(transactional_id: str, context: Context) -> ErrorCode:
    if not context.allows(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif not transactional_id:
        code = ErrorCode.INVALID_REQUEST
    else:
        code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    context.stats.failed(code)
    return code
