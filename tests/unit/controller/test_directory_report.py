"""Replicas that are found in another log directory than the metadata name."""

import asyncio

from riverlog.client.admin.admin import Admin
from riverlog.client.consumer.consumer import Consumer
from riverlog.client.producer.producer import Producer
from riverlog.controller.directory_report import DirectoryReport
from riverlog.metadata.commands.directories import AssignedReplica, AssignReplicas
from riverlog.metadata.leader_rules import LOST_DIRECTORY
from riverlog.model.ids import NodeId
from tests.support.clusters import ClusterOfNodes
from tests.support.disk import MemoryDisk
from tests.support.virtual_time import run


def move(disk: MemoryDisk, source: str, target: str) -> None:
    """Move a folder to another log directory, as an operator does while the node is stopped."""
    disk.make_folder(target)
    for name in disk.list(source):
        file = disk.open(f"{target}/{name}", create=True)
        file.write(0, [disk.content(f"{source}/{name}")])
        file.sync()
        file.close()
    disk.remove_folder(source)
    disk.sync_folder(target)


def test_what_was_moved_while_the_broker_was_away_is_reported_and_served() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 4: "broker"})
        await cluster.start(1)
        broker = cluster.build(4, log_dirs="/data,/more")
        await broker.start()
        async with Admin(cluster.address(4), ports=cluster.ports) as admin:
            await admin.create_topic("events", partitions=4)
        async with Producer(cluster.address(4), ports=cluster.ports) as producer:
            for number in range(4):
                await producer.send("events", b"%d" % number, partition=number)
        controller = cluster.nodes[1].controller

        def places() -> list[object]:
            topic = controller.image.topic("events")
            assert topic is not None
            return [each.directories[0] for each in topic.partitions]

        before = places()
        moved = before.index(before[0], 1)  # beside the first one
        assert len(set(before)) == 2
        await cluster.stop(4)
        disk = cluster.disks[4]
        here, there = ("/data", "/more") if f"events-{moved}" in disk.list("/data") else ("/more", "/data")
        move(disk, f"{here}/events-{moved}", f"{there}/events-{moved}")
        broker = cluster.build(4, log_dirs="/data,/more")
        await broker.start()
        await cluster.until(lambda: places() != before)
        (other,) = set(before) - {before[moved]}
        assert [index for index in range(4) if places()[index] != before[index]] == [moved]
        assert places()[moved] == other
        async with Consumer(cluster.address(4), auto_offset_reset="earliest", ports=cluster.ports) as consumer:
            consumer.assign(await consumer.partitions("events"))
            found = list[bytes | None]()
            while len(found) < 4:
                found += [record.value for record in await consumer.poll()]
        assert sorted(each or b"" for each in found) == [b"0", b"1", b"2", b"3"]
        await cluster.stop()

    run(scenario())


def test_what_was_lost_and_is_there_again_is_led_again() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 4: "broker"})
        await cluster.start()
        async with Admin(cluster.address(4), ports=cluster.ports) as admin:
            await admin.create_topic("events", partitions=2)
        async with Producer(cluster.address(4), ports=cluster.ports) as producer:
            for number in range(2):
                await producer.send("events", b"%d" % number, partition=number)
        controller = cluster.nodes[1].controller

        def leaders() -> list[int]:
            topic = controller.image.topic("events")
            assert topic is not None
            return [each.leader for each in topic.partitions]

        topic, broker = controller.image.topic("events"), controller.image.brokers[4]
        assert topic is not None
        lost = (AssignedReplica(LOST_DIRECTORY, topic.id, 1),)
        await controller.submit(AssignReplicas(NodeId(4), broker.epoch, lost))
        await cluster.stop(4)
        await cluster.start(4)
        await cluster.until(lambda: leaders() == [4, 4])
        await cluster.stop()

    run(scenario())


def test_what_is_gone_meanwhile_is_not_reported_for_ever() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 4: "broker"})
        await cluster.start()
        broker, channel = cluster.nodes[1].controller.image.brokers[4], cluster.nodes[4].part.channel
        assert channel is not None
        found = {(LOST_DIRECTORY, number): broker.log_dirs[0] for number in range(5_000)}
        async with asyncio.timeout(10):
            await DirectoryReport(NodeId(4), broker.epoch, channel, found).run()
            await DirectoryReport(NodeId(4), broker.epoch + 1, channel, found).run()
        await cluster.stop()

    run(scenario())
