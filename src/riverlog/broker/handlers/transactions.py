"""DescribeTransactions and ListTransactions: transactional ids, and what each of them is doing."""

import asyncio
from typing import Final

from riverlog.broker.requests.context import Context, HandlerResult, Later
from riverlog.groups.consumer.subscriptions import matching
from riverlog.model.access import Operation, ResourceType
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_TIMESTAMP, ProducerId
from riverlog.transactions.commands import DescribeTransactions, ListTransactions
from riverlog.transactions.states import Transaction, TransactionState
from riverlog.wire.messages import describe_transactions as described
from riverlog.wire.messages import list_transactions as listed
from riverlog.wire.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from riverlog.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

_STATE_BY_TITLE: Final = {state.title: state for state in TransactionState}


async def describe_transactions(request: DescribeTransactionsRequest, context: Context) -> DescribeTransactionsResponse:
    """Ask the coordinator of each id."""
    return DescribeTransactionsResponse(
        transaction_states=[await _described(each, context) for each in request.transactional_ids]
    )


async def _described(transactional_id: str, context: Context) -> described.TransactionState:
    try:
        found = await _find(transactional_id, context)
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        return described.TransactionState(error_code=refusal.code, transactional_id=transactional_id)
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(found.partitions):
        if context.allows_on_topic(Operation.DESCRIBE, topic):
            by_topic.setdefault(topic, []).append(partition)
    return described.TransactionState(
        transactional_id=transactional_id,
        transaction_state=found.state.title,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_ms,
        producer_id=found.producer.id,
        producer_epoch=found.producer.epoch,
        topics=[described.TopicData(topic, partitions) for topic, partitions in by_topic.items()],
    )


async def _find(transactional_id: str, context: Context) -> Transaction:
    if not context.allows(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise Refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, f"Not allowed to see {transactional_id!r}.")
    if not transactional_id:
        raise Refusal(ErrorCode.INVALID_REQUEST, "A transactional id must not be empty.")
    command = DescribeTransactions((transactional_id,))
    (found,) = await context.services.transactions.submit(transactional_id, command)
    if found is None:
        raise Refusal(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"There is no transactional id {transactional_id!r}.")
    return found


def list_transactions(request: ListTransactionsRequest, context: Context) -> HandlerResult[ListTransactionsResponse]:
    """Ask every coordinator, and name the states in the filter that do not exist.

    Those whose log is damaged cannot be asked. Who looks for a producer is refused then: to take it for unknown would
    be to end its transaction by hand.
    """
    unknown = [title for title in request.state_filters if title not in _STATE_BY_TITLE]
    response = ListTransactionsResponse(unknown_state_filters=unknown)
    if unknown and len(unknown) == len(request.state_filters):
        return response
    duration_ms = request.duration_filter
    command = ListTransactions(
        frozenset(_STATE_BY_TITLE[title] for title in request.state_filters if title not in unknown),
        frozenset(ProducerId(each) for each in request.producer_id_filters),
        context.now_ms - duration_ms if duration_ms >= 0 else NO_TIMESTAMP,
    )
    try:
        matching(request.transactional_id_pattern or "", ())
    except Refusal as refusal:
        return _refused(response, refusal, context)
    damage = context.services.transactions.damage()
    if damage and request.producer_id_filters:
        return _refused(response, next(iter(damage.values())), context)
    if context.client.takes_credits:  # a client of ours
        response.damaged_partitions = sorted(damage)
    asked = context.services.transactions.submit_to_all(command)
    return Later(_listed(response, asked, request.transactional_id_pattern, context)) if asked else response


async def _listed(
    response: ListTransactionsResponse,
    asked: "list[asyncio.Future[tuple[tuple[str, Transaction], ...]]]",
    pattern: str | None,
    context: Context,
) -> ListTransactionsResponse:
    await asyncio.wait(asked)
    try:
        found = {transactional_id: held for reply in asked for transactional_id, held in reply.result()}
    except Refusal as refusal:
        return _refused(response, refusal, context)
    names = matching(pattern, found) if pattern else found.keys()
    response.transaction_states = [
        listed.TransactionState(each, found[each].producer.id, found[each].state.title)
        for each in sorted(names)
        if context.allows(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, each)
    ]
    return response


def _refused(response: ListTransactionsResponse, refusal: Refusal, context: Context) -> ListTransactionsResponse:
    context.stats.failed(refusal.code)
    response.error_code = refusal.code
    return response
