"""Nodes that form a cluster: they find each other, decide together, and one that stops is missed by nobody."""

import asyncio
from uuid import UUID

import pytest

from riverlog.client.admin.admin import Admin
from riverlog.client.consumer.consumer import Consumer
from riverlog.client.errors import KafkaError
from riverlog.client.producer.producer import Producer
from riverlog.controller.bootstrap_file import write_bootstrap
from riverlog.log.identity import DirectoryRefused, find, write_identity
from riverlog.node_controller import QUORUM_REPORT_SECONDS, NotJoined
from tests.support.clusters import BOTH, ClusterOfNodes
from tests.support.virtual_time import run


def test_three_nodes_are_one_cluster() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes()
        await cluster.start()
        active = cluster.active()
        assert active is not None
        other = next(node for node in cluster.nodes if node != active)
        async with Admin(cluster.address(other), ports=cluster.ports) as admin:
            await admin.create_topic("events", partitions=6)
            await cluster.settled()
            [described] = await admin.describe_topics("events")
            assert sorted(each.leader or 0 for each in described.partitions) == [1, 1, 2, 2, 3, 3]
        async with Producer(cluster.address(1), ports=cluster.ports) as producer:
            for number in range(30):
                await producer.send("events", b"%d" % number, partition=number % 6)
        async with Consumer(cluster.address(2), auto_offset_reset="earliest", ports=cluster.ports) as consumer:
            consumer.assign(await consumer.partitions("events"))
            found = list[bytes | None]()
            while len(found) < 30:
                found += [record.value for record in await consumer.poll()]
        assert sorted(found) == sorted(b"%d" % number for number in range(30))
        await cluster.stop()

    run(scenario())


def test_the_loss_of_the_active_controller_is_survived_by_admins_of_another_broker() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 2: "controller", 3: "controller", 4: "broker", 5: "broker"})
        await cluster.start()
        active = cluster.active()
        assert active is not None
        async with Admin(cluster.address(4), ports=cluster.ports) as admin:
            await admin.create_topic("before", partitions=2)
            await cluster.stop(active)
            began = asyncio.get_running_loop().time()
            await admin.create_topic("after", partitions=2)
            assert asyncio.get_running_loop().time() - began < 1.0
            await cluster.settled()
            assert [topic.name for topic in await admin.list_topics()] == ["after", "before"]
        await cluster.stop()

    run(scenario())


def test_a_broker_that_is_gone_is_fenced_and_let_in_again() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 4: "broker", 5: "broker"})
        await cluster.start()
        image = cluster.nodes[1].controller
        assert [broker.fenced for broker in image.image.brokers.values()] == [False, False]
        epoch = image.image.brokers[4].epoch
        await cluster.stop(4)
        assert image.image.brokers[4].fenced
        await cluster.start(4)
        assert not image.image.brokers[4].fenced
        assert image.image.brokers[4].epoch > epoch
        await cluster.stop()

    run(scenario())


def test_a_cluster_begins_with_the_levels_it_was_formatted_with() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 4: "broker"})
        levels = {"metadata.version": 30, "transaction.version": 1}
        write_bootstrap(cluster.disks[1], "/data", levels)
        await cluster.start()
        assert cluster.nodes[4].controller.image.features == levels
        write_bootstrap(cluster.disks[1], "/data", {**levels, "group.version": 1})
        await cluster.stop()
        await cluster.start()
        assert cluster.nodes[4].controller.image.features == levels, "it has begun already"
        await cluster.stop()

    run(scenario())


def test_everything_has_one_replica_as_long_as_nothing_is_replicated() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes()
        await cluster.start()
        async with Admin(cluster.address(1), ports=cluster.ports) as admin:
            await admin.create_topic("events", partitions=3)
            [described] = await admin.describe_topics("events")
            assert [len(each.replicas) for each in described.partitions] == [1, 1, 1]
            with pytest.raises(KafkaError, match="not there yet; use a replication factor of 1"):
                await admin.create_topic("copied", replication_factor=2)
        async with Producer(cluster.address(1), ports=cluster.ports) as producer:
            await producer.send("events", b"one")
        group = Consumer(cluster.address(2), group="readers", auto_offset_reset="earliest", ports=cluster.ports)
        async with group as consumer:
            consumer.subscribe("events")
            while not await consumer.poll():
                pass
            await consumer.commit()
        offsets = cluster.nodes[1].controller.image.topic("__consumer_offsets")
        assert offsets is not None
        assert offsets.replication_factor == 1
        await cluster.stop()

    run(scenario())


def test_a_broker_whose_controllers_are_gone_stops_soon() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 4: "broker"})
        await cluster.start()
        await cluster.stop(1)
        await asyncio.sleep(1)
        began = asyncio.get_running_loop().time()
        await cluster.stop(4)
        assert asyncio.get_running_loop().time() - began < 5.0

    run(scenario())


def test_a_folder_that_belongs_to_no_cluster_joins_none() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: BOTH, 2: BOTH, 3: BOTH})
        cluster.disks[2].remove("/data/meta.properties")
        cluster.disks[2].remove_folder("/data/__cluster_metadata-0")
        with pytest.raises(DirectoryRefused, match=r"/data belongs to no cluster yet; .* riverlog storage format"):
            await cluster.build(2).start()

    run(scenario())


def test_whoever_finds_no_leader_says_who_was_asked_and_what_they_said() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes()
        with pytest.raises(
            NotJoined, match=r"no leader of the cluster's metadata was found within 60 s \(n\d:9093: .+"
        ):
            await cluster.build(2).start()

    run(scenario())


def test_a_node_of_another_cluster_is_told_at_once() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 4: "broker"})
        identity = find(cluster.disks[4], "/data")
        assert identity is not None
        write_identity(cluster.disks[4], "/data", identity._replace(cluster_id="another"))
        await cluster.start(1)
        began = asyncio.get_running_loop().time()
        with pytest.raises(
            NotJoined, match=r"cluster another, and the controllers that it asks \(n1:9093\) to another"
        ):
            await cluster.build(4).start()
        assert asyncio.get_running_loop().time() - began < 2.0
        del cluster.nodes[4]
        await cluster.stop()

    run(scenario())


def test_a_node_that_waits_says_whom_it_asks_and_a_replaced_disk_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 2: "controller", 3: "controller"})
        await cluster.start(1)
        await asyncio.sleep(QUORUM_REPORT_SECONDS + 1)
        assert reports("waiting for a leader of the metadata") == 1
        identity = find(cluster.disks[3], "/data")
        assert identity is not None
        write_identity(cluster.disks[3], "/data", identity._replace(directory_id=UUID(int=1 << 100)))
        await cluster.start(2, 3)
        await cluster.until(cluster.active)
        await asyncio.sleep(3 * QUORUM_REPORT_SECONDS)
        assert reports("waiting for a leader of the metadata") == 1
        assert reports("another log directory votes for this node; this one observes only") == 1
        await cluster.stop()

    def reports(message: str) -> int:
        return sum(record.message == message for record in caplog.records)

    run(scenario())
