"""The way to the active controller."""

import asyncio

import pytest

from riverlog.controller.channel import ControllerChannel, NoController
from riverlog.controller.log import OutcomeUnknown
from riverlog.controller.peers import Lane, Peers
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from tests.support.clusters import CLUSTER_ID, ClusterOfNodes
from tests.support.virtual_time import run


def channel_of(cluster: ClusterOfNodes, node: int) -> ControllerChannel:
    peers = Peers(cluster.network, CLUSTER_ID, connect_seconds=1, request_seconds=1)
    return ControllerChannel(cluster.nodes[node].controller.quorum, peers)


def test_whoever_leads_next_is_asked_where_nobody_took_the_request() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 2: "controller", 3: "controller", 4: "broker"})
        await cluster.start()
        channel = channel_of(cluster, 4)
        request = AllocateProducerIdsRequest(4, cluster.nodes[4].controller.image.brokers[4].epoch)
        first = await channel.ask(request, Lane.CONTROL, repeatable=True)
        active = cluster.active()
        assert active is not None
        await cluster.stop(active)
        second = await channel.ask(request, Lane.CONTROL, repeatable=True)
        assert [each.error_code for each in (first, second)] == [ErrorCode.NONE] * 2
        assert second.producer_id_start > first.producer_id_start
        await cluster.stop()

    run(scenario())


def test_a_lost_response_is_an_unknown_outcome_unless_the_request_may_be_repeated() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 4: "broker"})
        await cluster.start()
        channel = channel_of(cluster, 4)
        request = AllocateProducerIdsRequest(4, cluster.nodes[4].controller.image.brokers[4].epoch)
        await channel.ask(request, Lane.CONTROL, repeatable=True)
        asked = asyncio.ensure_future(channel.ask(request, Lane.CONTROL, repeatable=False))
        repeated = asyncio.ensure_future(channel.ask(request, Lane.FORWARD, repeatable=True, seconds=5))
        cluster.network.latency_seconds = 30
        with pytest.raises(OutcomeUnknown, match="not known"):
            await asked
        with pytest.raises(NoController, match="No active controller has answered"):
            await repeated
        cluster.network.latency_seconds = 0.001
        await asyncio.sleep(120)
        await cluster.stop()

    run(scenario())
