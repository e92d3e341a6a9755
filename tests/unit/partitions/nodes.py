"""Nodes with partitions, for the tests of this room."""

import asyncio

from riverlog import Admin
from riverlog.node import Node
from tests.support.batches import batch_of
from tests.support.world import PatientWorkers, Universe

AT = "node:9092"
BOTH = "/data,/more"


async def started(universe: Universe, **settings: str) -> Node:
    node = universe.node(**settings)
    await node.start()
    return node


def append(node: Node, topic: str = "orders", index: int = 0) -> None:
    partition = node.parts.replicas.get(topic, index)
    assert partition is not None
    partition.append(memoryview(batch_of([b"value"])), now_ms=1_700_000_000_000)


def folders(universe: Universe) -> list[str]:
    return [name for name in universe.disk.list("/data") if name.startswith("orders-")]


async def crashed(universe: Universe, partitions: int) -> Node:
    """A node that was killed after a record went into each partition of a durable topic, and runs again."""
    node = await started(universe)
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=partitions, configs={"durability": "fsync"})
    for index in range(partitions):
        append(node, index=index)
    await asyncio.sleep(1)
    await universe.lose_power()
    universe.workers = PatientWorkers(universe.random, seconds_max=1.0)
    return await started(universe)


async def a_node_with_two_directories(universe: Universe) -> int:
    """Run a node with a record in each of four partitions, and stop it; return which of them lies in the second one."""
    node = await started(universe, log_dirs=BOTH)
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=4)
    for index in range(4):
        append(node, index=index)
    (lies, *_) = [index for index in range(4) if universe.disk.exists(f"/more/orders-{index}")]
    await node.stop()
    return lies
