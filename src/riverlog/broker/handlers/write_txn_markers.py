"""WriteTxnMarkers: write how transactions ended that their coordinators do not end; answer once that is committed.

The node's own coordinators write their markers without it. So one of a member of a shared transaction is refused while
that is open, or decided otherwise: a batch would be committed without a part of it.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Final

from riverlog.broker.limits import REQUEST_PORTION
from riverlog.broker.requests.context import Context, HandlerResult, Later
from riverlog.broker.requests.portions import in_turns
from riverlog.coordination.futures import answered
from riverlog.coordination.marker_writer import in_words_of_leaders
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.transactions import TransactionMarkers, TransactionVersion
from riverlog.transactions.commands import DescribeTransactions, ListTransactions
from riverlog.transactions.states import Transaction, TransactionState
from riverlog.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


def write_txn_markers(request: WriteTxnMarkersRequest, context: Context) -> HandlerResult[WriteTxnMarkersResponse]:
    """Write the markers now, in arrival order; requests behind one that takes several turns wait for it.

    Each partition of each producer is answered on its own.
    """
    if not (context.allows_on_cluster(Operation.CLUSTER_ACTION) or context.allows_on_cluster(Operation.ALTER)):
        return Later(_response(request, None, context))
    sharing = _Sharing(frozenset(ProducerId(each.producer_id) for each in request.markers), context)
    if sharing.is_ruled_out and _size(request) <= REQUEST_PORTION:
        begun = [_begin(_markers(each), frozenset(), context) for each in request.markers]
        return Later(_response(request, begun, context))
    return Later(_write_in_turns(request, sharing, context), holds_line=True)


_Begun = Mapping[TopicPartition, "asyncio.Future[ErrorCode]"]


async def _write_in_turns(
    request: WriteTxnMarkersRequest, sharing: "_Sharing", context: Context
) -> WriteTxnMarkersResponse:
    """Write the markers that tear nothing apart, and let others have their turn in between."""
    await sharing.look()
    begun: list[_Begun] = []
    async for each in in_turns(request.markers, _MARKERS_PER_TURN):
        found: dict[TopicPartition, asyncio.Future[ErrorCode]] = {}
        for piece in _pieces(_markers(each)):
            try:
                found |= _begin(piece, await sharing.torn_by(piece), context)
            except Refusal as refusal:
                found |= {each: answered(in_words_of_leaders(refusal.code)) for each in piece.partitions}
            if len(piece.partitions) == REQUEST_PORTION:
                await asyncio.sleep(0)
        begun.append(found)
    return await _response(request, begun, context)


def _begin(markers: TransactionMarkers, torn: Set[TopicPartition], context: Context) -> _Begun:
    """Append the markers, but for those that may not be."""
    guarded = {each for each in markers.partitions if not context.allows_on_topic(Operation.WRITE, each.topic)}
    free = tuple(each for each in markers.partitions if each not in torn and each not in guarded)
    return {
        **context.services.marker_writer.begin(replace(markers, partitions=free)),
        **{each: answered(ErrorCode.INVALID_TXN_STATE) for each in torn},
        **{each: answered(ErrorCode.TOPIC_AUTHORIZATION_FAILED) for each in guarded},
    }


async def _response(
    request: WriteTxnMarkersRequest, begun: Sequence[_Begun] | None, context: Context
) -> WriteTxnMarkersResponse:
    """Answer when all markers are committed, or never will be; None stands for those that nobody may write."""
    response = WriteTxnMarkersResponse()
    for number, asked in enumerate(request.markers):
        result = WritableTxnMarkerResult(asked.producer_id)
        response.markers.append(result)
        for topic in asked.topics:
            answer = WritableTxnMarkerTopicResult(topic.name)
            result.topics.append(answer)
            async for index in in_turns(topic.partition_indexes):
                code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                if begun is not None:
                    code = await begun[number][TopicPartition(topic.name, index)]
                context.stats.failed(code)
                answer.partitions.append(WritableTxnMarkerPartitionResult(index, code))
    return response


class _Sharing:
    """Knows which of the producers that a request names may write as members of a shared transaction.

    Every coordinator is asked once for all of them, at once: mostly none shares anything, and none is asked again.
    """

    def __init__(self, producer_ids: frozenset[ProducerId], context: Context) -> None:
        self._transactions = context.services.transactions
        self._asked = self._transactions.submit_to_all(ListTransactions(producer_ids=producer_ids))
        self._refusal: Refusal | None = None
        self._any_shares = False

    @property
    def is_ruled_out(self) -> bool:
        """Return whether all coordinators have said already that none shares anything."""
        return all(
            asked.done() and asked.exception() is None and not _any_shares(asked.result()) for asked in self._asked
        )

    async def look(self) -> None:
        """Wait until all coordinators have answered."""
        try:
            for asked in self._asked:
                self._any_shares |= _any_shares(await asked)
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
            for transactional_id, held in await asked:
                if held.producer.id == markers.producer_id:
                    continue  # it writes alone
                described = self._transactions.submit(transactional_id, DescribeTransactions((transactional_id,)))
                (whole,) = await described
                if whole is not None and whole.state is not _ENDING[markers.committed]:
                    found |= whole.partitions & set(markers.partitions)
        return frozenset(found)


def _any_shares(listed: Iterable[tuple[str, Transaction]]) -> bool:
    return any(held.shared is not None for _, held in listed)


def _size(request: WriteTxnMarkersRequest) -> int:
    """Count what there is to do."""
    return len(request.markers) + sum(len(topic.partition_indexes) for each in request.markers for topic in each.topics)


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
