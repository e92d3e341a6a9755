"""A broker's session: it is let in, heard of, and let go."""

import asyncio

import pytest

from riverlog.controller.broker_session import NotRegistered
from riverlog.metadata.commands.brokers import UnregisterBroker
from riverlog.model.ids import NodeId
from tests.support.clusters import ClusterOfNodes
from tests.support.virtual_time import run


def test_a_broker_is_heard_by_whoever_leads() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 2: "controller", 3: "controller", 4: "broker"})
        await cluster.start()
        active = cluster.active()
        assert active is not None
        await cluster.stop(active)
        await cluster.until(lambda: cluster.active() is not None)
        await asyncio.sleep(30)
        other = cluster.active()
        assert other is not None
        assert not cluster.nodes[other].controller.image.brokers[4].fenced
        await cluster.stop()

    run(scenario())


def test_a_broker_that_does_not_fit_says_why() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 4: "broker"})
        await cluster.start(1)
        cluster.disks[4].remove("/data/meta.properties")
        meta = (
            b"version=1\ncluster.id=abcdefghijklmnopqrstuA\nnode.id=4\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\nregion=\n"
        )
        cluster.disks[4].open("/data/meta.properties", create=True).write(0, [meta])
        with pytest.raises(
            NotRegistered,
            match=r"broker 4 could not join the cluster .*: the controller does not take its log directories",
        ):
            await cluster.start(4)
        await cluster.stop(1)

    run(scenario())


def test_a_broker_whose_controllers_are_gone_stops_all_the_same() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 4: "broker"})
        await cluster.start()
        await cluster.stop(1)
        began = asyncio.get_running_loop().time()
        await cluster.stop(4)
        assert asyncio.get_running_loop().time() - began < 20

    run(scenario())


def test_a_broker_that_was_replaced_serves_no_more() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 4: "broker", 5: "broker"})
        await cluster.start()
        await cluster.nodes[1].controller.submit(UnregisterBroker(NodeId(4)))
        failure = await asyncio.wait_for(cluster.nodes[4].run(), 5)
        assert "another process has registered as broker 4" in str(failure)
        await cluster.stop()

    run(scenario())
