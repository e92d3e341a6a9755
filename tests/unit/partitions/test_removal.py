"""The partitions of deleted topics: gone for clients at once, and their folders after them."""

import asyncio

import pytest

from riverlog import Admin, Producer
from riverlog.model.ids import TopicPartition
from riverlog.partitions.recovery import Recovering
from tests.support.world import Universe
from tests.unit.partitions.nodes import AT, append, crashed, folders, started


async def test_a_deleted_partition_leaves_and_its_room_comes_back() -> None:
    universe = Universe()
    node = await started(universe)
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=2)
        append(node)
        append(node, index=1)
        await node.parts.checkpoints.write()
        await admin.delete_topics(["orders"])
    assert node.parts.replicas.get("orders", 0) is None
    await asyncio.sleep(3)
    assert folders(universe) == []
    assert not node.parts.registry.directories[0].logs.has_forgotten, "who makes it again need not wait for the medium"
    await node.stop()


async def test_a_topic_can_be_deleted_and_made_again_while_it_recovers() -> None:
    universe = Universe()
    node = await crashed(universe, 2)
    name = TopicPartition("orders", 0)
    with pytest.raises(Recovering):
        node.parts.replicas.get(*name)
    await asyncio.sleep(0.01)  # the slow work has begun
    universe.workers._seconds_max = 0.001  # type: ignore[attr-defined]
    recovery = node.parts.registry.directories[0].recovery
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.delete_topics(["orders"])
        await admin.create_topic("orders", partitions=2)
        assert name in recovery
    async with Producer(AT, ports=universe.ports) as producer:
        sent = await producer.send("orders", value=b"new", partition=0)
        assert sent.offset == 0
    await node.stop()
