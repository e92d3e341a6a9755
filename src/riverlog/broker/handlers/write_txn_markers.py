"""WriteTxnMarkers: write how transactions ended that their coordinators do not end; answer once that is committed.

The node's own coordinators write their markers without it. So one of a member of a shared transaction is refused while
that is open, or decided otherwise: a batch would be committed without a part of it.
"""

import asyncio
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from riverlog.broker.limits import REQUEST_PORTION
from riverlog.broker.requests.context import Answer, Context, Later
from riverlog.broker.requests.portions import in_turns
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.transactions import TransactionMarkers, TransactionVersion
from riverlog.transactions.commands import DescribeTransactions, ListTransactions
from riverlog.transactions.states import TransactionState
from riverlog.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


def write_txn_markers(request: WriteTxnMarkersRequest, context: Context) -> Answer[WriteTxnMarkersResponse]:
    """Answer each partition of each producer on its own."""
    return Later(_written(request, context))


async def _written(request: WriteTxnMarkersRequest, context: Context) -> WriteTxnMarkersResponse:
    allowed = context.allows_on_cluster(Operation.CLUSTER_ACTION) or context.allows_on_cluster(Operation.ALTER)
    begun: list[dict[TopicPartition, Awaitable[ErrorCode]] | None] = [None] * len(request.markers)
    if allowed:
        sharing = _Sharing(context)
        await sharing.look_for(frozenset(ProducerId(each.producer_id) for each in request.markers))
        for slot, each in enumerate(request.markers):
            found: dict[TopicPartition, Awaitable[ErrorCode]] = {}
            begun[slot] = found
            for piece in _pieces(_markers(each)):
                found |= await _begun(piece, sharing, context)
                if len(piece.partitions) == REQUEST_PORTION:
                    await asyncio.sleep(0)
            if slot % _MARKERS_PER_TURN == _MARKERS_PER_TURN - 1:
                await asyncio.sleep(0)
    response = WriteTxnMarkersResponse()
    for asked, under_way in zip(request.markers, begun, strict=True):
        result = WritableTxnMarkerResult(asked.producer_id)
        response.markers.append(result)
        for topic in asked.topics:
            answer = WritableTxnMarkerTopicResult(topic.name)
            result.topics.append(answer)
            async for index in in_turns(topic.partition_indexes):
                code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                if under_way is not None:
                    code = await under_way[TopicPartition(topic.name, index)]
                if code is not ErrorCode.NONE:
                    context.stats.failed(code)
                answer.partitions.append(WritableTxnMarkerPartitionResult(index, code))
    return response


async def _begun(
    markers: TransactionMarkers, sharing: "_Sharing", context: Context
) -> "Mapping[TopicPartition, Awaitable[ErrorCode]]":
    """Append the markers that tear nothing apart."""
    try:
        kept_back = await sharing.torn_by(markers)
    except Refusal as refusal:
        return {each: _refused(refusal.code) for each in markers.partitions}
    guarded = {each for each in markers.partitions if not context.allows_on_topic(Operation.WRITE, each.topic)}
    free = tuple(each for each in markers.partitions if each not in kept_back and each not in guarded)
    begun: dict[TopicPartition, Awaitable[ErrorCode]] = dict(
        context.services.marker_writer.begin(replace(markers, partitions=free))
    )
    begun |= {each: _refused(ErrorCode.INVALID_TXN_STATE) for each in kept_back}
    return begun | {each: _refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED) for each in guarded}


class _Sharing:
    """Knows which of the producers that a request names may write as members of a shared transaction."""

    def __init__(self, context: Context) -> None:
        self._transactions = context.services.transactions
        self._refusal: Refusal | None = None
        self._any_shares = False

    async def look_for(self, producer_ids: frozenset[ProducerId]) -> None:
        """Ask every coordinator once for all of them: mostly none shares anything, and none is asked about again."""
        try:
            for asked in self._transactions.submit_to_all(ListTransactions(producer_ids=producer_ids)):
                self._any_shares |= any(held.shared is not None for _, held in (await asked).transactions)
        except Refusal as refusal:
            self._refusal = refusal

    async def torn_by(self, markers: TransactionMarkers) -> frozenset[TopicPartition]:
        """Find the partitions in which a producer writes as a member of a batch that is not decided like this."""
        if self._refusal is not None:
            raise self._refusal
        found: set[TopicPartition] = set()
        if not self._any_shares:
            return frozenset()
        await asyncio.sleep(0)
        for asked in self._transactions.submit_to_all(ListTransactions(producer_ids=frozenset((markers.producer_id,)))):
            for transactional_id, held in (await asked).transactions:
                if held.producer.id == markers.producer_id:
                    continue  # it writes alone
                described = self._transactions.submit(transactional_id, DescribeTransactions((transactional_id,)))
                (whole,) = (await described).transactions
                if whole is not None and whole.state is not _ENDING[markers.committed]:
                    found |= whole.partitions & set(markers.partitions)
        return frozenset(found)


def _refused(code: ErrorCode) -> "asyncio.Future[ErrorCode]":
    told: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
    told.set_result(code)
    return told


_MARKERS_PER_TURN: Final = 100  # others have their turn in between
_ENDING: Final = {True: TransactionState.PREPARE_COMMIT, False: TransactionState.PREPARE_ABORT}


def _pieces(markers: TransactionMarkers) -> Iterator[TransactionMarkers]:
    """Cut a marker for very many partitions into markers for as many as are done at a stretch."""
    partitions = markers.partitions
    for start in range(0, len(partitions), REQUEST_PORTION) or (0,):
        yield replace(markers, partitions=partitions[start : start + REQUEST_PORTION])


def _markers(asked: WritableTxnMarker) -> TransactionMarkers:
    version = TransactionVersion.EPOCH_PER_TRANSACTION
    return TransactionMarkers(
        producer_id=ProducerId(asked.producer_id),
        producer_epoch=ProducerEpoch(asked.producer_epoch),
        coordinator_epoch=asked.coordinator_epoch,
        committed=asked.transaction_result,
        partitions=tuple(
            TopicPartition(topic.name, index)
            for topic in asked.topics
            for index in dict.fromkeys(topic.partition_indexes)
        ),
        version=version if asked.transaction_version >= version else TransactionVersion.CLASSIC,
    )
