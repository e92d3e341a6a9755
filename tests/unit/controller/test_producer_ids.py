"""Producer ids, a block at a time."""

import asyncio

from tests.support.disk import MemoryDisk
from tests.unit.controller.metadata_node import Node, run


@run
async def test_producer_ids_are_never_given_twice():
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    taken = await asyncio.gather(*(node.producer_ids.next() for _ in range(1_500)))
    assert sorted(taken) == list(range(1_500))
    await node.controller.close()
    again = Node(disk)
    assert await again.producer_ids.next() == 2_000
    await again.controller.close()
