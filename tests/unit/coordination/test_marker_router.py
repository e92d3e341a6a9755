"""Markers on their way to the leaders of partitions: which share a request, and which are asked for again."""

import asyncio
from collections.abc import Mapping

from riverlog.coordination.limits import MARKED_PER_REQUEST_MAX
from riverlog.coordination.marker_router import MarkerRouter, Unsent, fitting
from riverlog.coordination.marker_writer import MarkerWriter
from riverlog.coordination.other_brokers import OtherBrokers
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId, ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.transactions import TransactionMarkers, TransactionVersion
from riverlog.node import Node
from tests.support.asking import serving
from tests.support.second_broker import SecondBroker
from tests.support.world import Universe


def markers(producer: int, *partitions: TopicPartition) -> TransactionMarkers:
    version = TransactionVersion.EPOCH_PER_TRANSACTION
    return TransactionMarkers(ProducerId(producer), ProducerEpoch(1), 0, True, partitions, version)


def unsent(producer: int, count: int = 1) -> Unsent:
    names = (TopicPartition("t", index) for index in range(count))
    return Unsent(markers(producer, *names), asyncio.get_running_loop().create_future())


def router_on(universe: Universe, node: Node) -> MarkerRouter:
    parts = node.parts
    others = OtherBrokers(NodeId(1), universe.network, node.cluster_id, parts.metadata, universe.clock, "")
    return others.markers(MarkerWriter(parts.replicas, parts.groups, universe.clock))


async def test_a_producer_stands_once_in_a_request() -> None:
    first, again, second = unsent(7), unsent(7), unsent(8)
    assert fitting([first, again, second]) == ([first, second], [again])


async def test_a_request_is_full_but_takes_one_that_is_larger_alone() -> None:
    large, small, full = unsent(1, MARKED_PER_REQUEST_MAX + 1), unsent(2), unsent(3, MARKED_PER_REQUEST_MAX)
    assert fitting([large, small]) == ([large], [small])
    assert fitting([small, full]) == ([small], [full])


async def test_what_is_here_is_written_and_what_nobody_answers_for_is_missing() -> None:
    universe = Universe()
    async with serving(universe) as (_line, node):
        other = await SecondBroker.join(node)
        await other.create("t", (1, 2), (2, 1))
        here, there, nowhere = (TopicPartition("t", index) for index in range(3))
        router = router_on(universe, node)

        async def written() -> Mapping[TopicPartition, ErrorCode]:
            return await router.write(markers(7, here, there, nowhere))

        assert await written() == {here: ErrorCode.NONE, nowhere: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        await other.fence()
        codes = await written()
        assert codes == {
            here: ErrorCode.NONE,
            there: ErrorCode.NONE,
            nowhere: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        router.close()


async def test_a_partition_without_a_leader_is_refused_here() -> None:
    universe = Universe()
    async with serving(universe) as (_line, node):
        other = await SecondBroker.join(node)
        await other.create("t", (2,))
        await other.fence()
        name = TopicPartition("t", 0)
        router = router_on(universe, node)
        assert await router.write(markers(7, name)) == {name: ErrorCode.NOT_LEADER_OR_FOLLOWER}
