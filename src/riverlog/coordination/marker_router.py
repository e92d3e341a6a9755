"""The way of markers to the leaders of partitions: to the logs of this node, or over the network (WriteTxnMarkers).

Markers for one broker share requests, one of which is under way at a time. A partition that nobody leads is refused
here as any other that this node does not lead; whoever sends the markers tries again, and they take the way to whoever
leads then.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from riverlog.client.errors import error_code
from riverlog.controller.peers import Lane
from riverlog.controller.quorum_ports import NoResponse
from riverlog.controller.view import MetadataView
from riverlog.coordination.broker_requests import BrokerRequests, RequestQueue
from riverlog.coordination.limits import MARKED_PER_REQUEST_MAX, MARKER_RESPONSE_SECONDS_MAX
from riverlog.coordination.marker_writer import MarkerWriter
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_NODE, NodeId, TopicPartition
from riverlog.model.transactions import TransactionMarkers
from riverlog.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

Codes = Mapping[TopicPartition, ErrorCode]


class Unsent(NamedTuple):
    """Markers of one producer for partitions of one broker, and who waits to hear how it went."""

    markers: TransactionMarkers
    answer: "asyncio.Future[Codes]"


class MarkerRouter:
    """Sends markers to whoever leads their partitions."""

    def __init__(self, node_id: NodeId, writer: MarkerWriter, brokers: BrokerRequests, metadata: MetadataView) -> None:
        self._node_id = node_id
        self._writer = writer
        self._brokers = brokers
        self._metadata = metadata
        self._queues: dict[NodeId, RequestQueue[Unsent]] = {}

    def write(self, markers: TransactionMarkers) -> Awaitable[Codes]:
        """Write a marker to each partition; the answer lacks those whose leader did not answer in time."""
        by_leader: dict[NodeId, list[TopicPartition]] = {}
        for name in markers.partitions:
            leader = self._leader(name)
            by_leader.setdefault(self._node_id if leader == NO_NODE else leader, []).append(name)
        asked = [
            self._writer.write(part) if leader == self._node_id else self._send_to(leader, part)
            for leader, names in by_leader.items()
            for part in (replace(markers, partitions=tuple(names)),)
        ]
        return asked[0] if len(asked) == 1 else _all(asked)

    def close(self) -> None:
        """Send nothing more."""
        for queue in self._queues.values():
            queue.close()

    def _leader(self, name: TopicPartition) -> NodeId:
        topic = self._metadata.image.topic(name.topic)
        if topic is None or name.partition >= topic.partition_count:
            return NO_NODE
        return topic.partition(name.partition).leader

    def _send_to(self, leader: NodeId, markers: TransactionMarkers) -> "asyncio.Future[Codes]":
        queue = self._queues.get(leader)
        if queue is None:
            queue = self._queues[leader] = RequestQueue(partial(self._send, leader))
        answer: asyncio.Future[Codes] = asyncio.get_running_loop().create_future()
        queue.put(Unsent(markers, answer))
        return answer

    async def _send(self, leader: NodeId, unsent: Sequence[Unsent]) -> Sequence[Unsent]:
        """Send as many as go into one request; return the others."""
        taken, left = fitting(each for each in unsent if not each.answer.done())  # some have lost patience
        if not taken:
            return ()
        request = WriteTxnMarkersRequest([_writable(each.markers) for each in taken])
        try:
            response = await self._brokers.ask(leader, request, Lane.MARKERS, seconds=MARKER_RESPONSE_SECONDS_MAX)
            told = _codes(response)
        except NoResponse:
            told = {}
        for each in taken:
            if not each.answer.done():
                each.answer.set_result(told.get(each.markers.producer_id, {}))
        return left


async def _all(asked: Iterable[Awaitable[Codes]]) -> Codes:
    """Wait for all; nobody answers much later than the others."""
    return {name: code for codes in await asyncio.gather(*asked) for name, code in codes.items()}


def fitting(unsent: Iterable[Unsent]) -> tuple[list[Unsent], list[Unsent]]:
    """Take what goes into one request, in which each producer stands once, since answers go by producers."""
    taken: dict[int, Unsent] = {}
    left: list[Unsent] = []
    room = MARKED_PER_REQUEST_MAX
    for each in unsent:
        if each.markers.producer_id in taken or (taken and len(each.markers.partitions) > room):
            left.append(each)
        else:
            taken[each.markers.producer_id] = each
            room -= len(each.markers.partitions)
    return list(taken.values()), left


def _writable(markers: TransactionMarkers) -> WritableTxnMarker:
    by_topic: dict[str, list[int]] = {}
    for name in markers.partitions:
        by_topic.setdefault(name.topic, []).append(name.partition)
    return WritableTxnMarker(
        markers.producer_id,
        markers.producer_epoch,
        markers.committed,
        [WritableTxnMarkerTopic(topic, indexes) for topic, indexes in by_topic.items()],
        markers.coordinator_epoch,
        markers.version,
    )


def _codes(response: WriteTxnMarkersResponse) -> dict[int, Codes]:
    return {
        each.producer_id: {
            TopicPartition(topic.name, part.partition_index): error_code(part.error_code)
            for topic in each.topics
            for part in topic.partitions
        }
        for each in response.markers
    }
