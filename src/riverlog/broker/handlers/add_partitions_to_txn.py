"""AddPartitionsToTxn: partitions are taken into a transaction before the producer writes to them.

Clients send versions up to 3, for one transaction; brokers those from 4 on, for many, and may only want to know whether
the partitions belong to it. One partition that is unknown or forbidden keeps out all others of its transaction.
"""

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from riverlog.broker.coordinator_requests import ask_if_allowed, known_since
from riverlog.broker.limits import REQUEST_PORTION
from riverlog.broker.requests.context import Context, HandlerResult, Later
from riverlog.broker.requests.portions import in_turns
from riverlog.coordination.futures import answered
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.internal_topics import COORDINATOR_TOPICS
from riverlog.model.transactions import ProducerIdentity, TransactionVersion
from riverlog.transactions.commands import AddPartitions, PartitionsReply, VerifyPartitions
from riverlog.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

_FIRST_VERSION_WITH_FENCED: Final = 2
_FIRST_VERSION_OF_BROKERS: Final = 4


def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, context: Context
) -> HandlerResult[AddPartitionsToTxnResponse]:
    """Add the partitions to their transactions, each at its coordinator."""
    if _is_of_broker(context) and not context.allows_on_cluster(Operation.CLUSTER_ACTION):
        context.stats.failed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    transactions = request.transactions if _is_of_broker(context) else [_only_one(request)]
    if sum(1 + len(topic.partitions) for each in transactions for topic in each.topics) > REQUEST_PORTION:
        return Later(_asked_in_turns(transactions, context), holds_line=True)
    asked = [_ask(_partitions(each), each, context) for each in transactions]
    if all(reply.done() for reply in asked):
        return _response(transactions, asked, context)
    return Later(_response_later(transactions, asked, context))


def _is_of_broker(context: Context) -> bool:
    return context.version >= _FIRST_VERSION_OF_BROKERS


def _only_one(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


def _partitions(transaction: AddPartitionsToTxnTransaction) -> tuple[TopicPartition, ...]:
    return tuple(_each_partition(transaction))


def _each_partition(transaction: AddPartitionsToTxnTransaction) -> Iterator[TopicPartition]:
    return (TopicPartition(topic.name, index) for topic in transaction.topics for index in topic.partitions)


async def _asked_in_turns(
    transactions: list[AddPartitionsToTxnTransaction], context: Context
) -> AddPartitionsToTxnResponse:
    """Check the partitions of a large request while others have their turn; each transaction is decided at once."""
    asked: list[asyncio.Future[PartitionsReply]] = []
    for each in transactions:
        codes = [_refusal(partition, context) async for partition in in_turns(_each_partition(each))]
        asked.append(_ask(_partitions(each), each, context, codes))
        await asyncio.sleep(0)
    await asyncio.wait(asked)
    return _response(transactions, asked, context)


def _ask(
    partitions: tuple[TopicPartition, ...],
    transaction: AddPartitionsToTxnTransaction,
    context: Context,
    known: Sequence[ErrorCode] = (),
) -> "asyncio.Future[PartitionsReply]":
    """Ask for all partitions of a transaction, unless one of them cannot be part of it."""
    codes = known or tuple(_refusal(each, context) for each in partitions)
    if any(code is not ErrorCode.NONE for code in codes):
        told = (ErrorCode.OPERATION_NOT_ATTEMPTED if code is ErrorCode.NONE else code for code in codes)
        return answered(PartitionsReply(tuple(told)))
    producer = ProducerIdentity(ProducerId(transaction.producer_id), ProducerEpoch(transaction.producer_epoch))
    from_broker = _is_of_broker(context)
    version = TransactionVersion.EPOCH_PER_TRANSACTION if from_broker else TransactionVersion.CLASSIC
    command = (
        VerifyPartitions(transaction.transactional_id, producer, partitions)
        if transaction.verify_only
        else AddPartitions(transaction.transactional_id, producer, partitions, version)
    )
    ask = partial(context.services.transactions.submit, transaction.transactional_id, command)
    return ask() if from_broker else ask_if_allowed(context, transaction.transactional_id, ask)


def _refusal(partition: TopicPartition, context: Context) -> ErrorCode:
    """Return why a partition cannot be part of a transaction; the internal ones are not for clients to name."""
    is_for_brokers = partition.topic in COORDINATOR_TOPICS
    if not _is_of_broker(context) and (is_for_brokers or not context.allows_on_topic(Operation.WRITE, partition.topic)):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = context.image.topic(partition.topic)
    if topic is None or not 0 <= partition.partition < topic.partition_count:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


async def _response_later(
    transactions: list[AddPartitionsToTxnTransaction], asked: "list[asyncio.Future[PartitionsReply]]", context: Context
) -> AddPartitionsToTxnResponse:
    await asyncio.wait(asked)
    return _response(transactions, asked, context)


def _response(
    transactions: list[AddPartitionsToTxnTransaction], asked: "list[asyncio.Future[PartitionsReply]]", context: Context
) -> AddPartitionsToTxnResponse:
    results = [_result(each, reply, context) for each, reply in zip(transactions, asked, strict=True)]
    if _is_of_broker(context):
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results)


def _result(
    transaction: AddPartitionsToTxnTransaction, reply: "asyncio.Future[PartitionsReply]", context: Context
) -> AddPartitionsToTxnResult:
    codes = iter(_codes(len(_partitions(transaction)), reply, context))
    return AddPartitionsToTxnResult(
        transaction.transactional_id,
        [
            AddPartitionsToTxnTopicResult(
                topic.name, [AddPartitionsToTxnPartitionResult(index, next(codes)) for index in topic.partitions]
            )
            for topic in transaction.topics
        ],
    )


def _codes(count: int, reply: "asyncio.Future[PartitionsReply]", context: Context) -> list[ErrorCode]:
    try:
        codes = [known_since(_FIRST_VERSION_WITH_FENCED, code, context) for code in reply.result().codes]
    except Refusal as refusal:
        codes = [refusal.code] * count
    for code in codes:
        context.stats.failed(code)
    return codes
