"""Controllers asked on their own listener, and voters that are added and removed by them or through brokers."""

import asyncio
from random import Random

import pytest

from riverlog.client.admin.admin import Admin
from riverlog.client.admin.controllers import ControllerAdmin
from riverlog.client.errors import KafkaError, Unreachable
from riverlog.controller.formatting import format_directories
from riverlog.controller.opening import controller_endpoints
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId
from riverlog.raft.voters import ReplicaKey, Voter
from tests.support.clusters import CLUSTER_ID, ClusterOfNodes, StillClock
from tests.support.disk import MemoryDisk
from tests.support.raft import directory
from tests.support.virtual_time import run


async def growing() -> ClusterOfNodes:
    """Start a controller that votes alone, one that follows it, and a broker."""
    cluster = ClusterOfNodes({1: "controller", 2: "controller", 4: "broker"})
    first = Voter(ReplicaKey(NodeId(1), directory(1)), controller_endpoints(cluster.settings(1)))
    for node in (1, 2):
        disk = cluster.disks[node] = MemoryDisk(node)
        format_directories(
            disk,
            StillClock(),
            Random(node),
            ["/data"],
            cluster_id=CLUSTER_ID,
            node_id=NodeId(node),
            own_voter=first if node == 1 else None,
        )
    await cluster.start()
    return cluster


def test_a_controller_that_follows_is_added_through_a_broker_and_removed_by_a_controller() -> None:
    async def scenario() -> None:
        cluster = await growing()
        async with (
            Admin(cluster.address(4), ports=cluster.ports) as admin,
            ControllerAdmin("n2:9093", ports=cluster.ports) as controllers,
        ):
            described = await admin.describe_quorum()
            while {each.node_id for each in described.observers} != {2, 4}:
                await asyncio.sleep(0.1)
                described = await admin.describe_quorum()
            [endpoint] = described.endpoints[NodeId(1)]
            assert (endpoint.listener, str(endpoint.address)) == ("CONTROLLER", "n1:9093")
            [disk] = [each.directory_id for each in described.observers if each.node_id == 2]
            await admin.add_voter(2, disk, {"CONTROLLER": ("n2", 9093)})
            assert [each.node_id for each in (await controllers.describe_quorum()).voters] == [1, 2]
            with pytest.raises(KafkaError) as twice:
                await controllers.add_voter(2, disk, {"CONTROLLER": ("n2", 9093)})
            assert twice.value.code is ErrorCode.DUPLICATE_VOTER
            with pytest.raises(KafkaError) as foreign:
                await controllers.remove_voter(2, directory(9))
            assert foreign.value.code is ErrorCode.VOTER_NOT_FOUND
            await controllers.remove_voter(2, disk)
            assert [each.node_id for each in (await admin.describe_quorum()).voters] == [1]
            assert (await controllers.describe_features()).finalized == (await admin.describe_features()).finalized
        await cluster.stop()

    run(scenario())


def test_a_broker_that_is_gone_is_taken_out_by_the_controller() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 4: "broker", 5: "broker"})
        await cluster.start()
        await cluster.stop(5)
        async with (
            Admin(cluster.address(4), ports=cluster.ports) as admin,
            ControllerAdmin(["n9:9093", "n1:9093"], ports=cluster.ports) as controllers,
        ):
            described = await admin.describe_cluster(fenced=True)
            assert ([each.node_id for each in described.brokers], described.fenced) == ([4, 5], {5})
            await controllers.unregister_broker(5)
            assert [each.node_id for each in (await admin.describe_cluster(fenced=True)).brokers] == [4]
            with pytest.raises(KafkaError) as unknown:
                await admin.unregister_broker(5)
            assert unknown.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED
        await cluster.stop()

    run(scenario())


def test_where_nobody_leads_or_listens_that_is_said() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 2: "controller", 3: "controller"})
        await cluster.start(1)
        with pytest.raises(KafkaError, match="n1:9093 knows no active controller"):
            await ControllerAdmin("n1:9093", ports=cluster.ports).start()
        with pytest.raises(Unreachable):
            await ControllerAdmin("n2:9093", ports=cluster.ports).start()
        await cluster.stop()

    run(scenario())
