"""The controller: what was decided survives."""

from tests.support.disk import MemoryDisk
from tests.unit.controller.metadata_node import Node, crash, names, run


@run
async def test_metadata_survives_a_restart():
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    await node.create("orders", "bills", partitions=3)
    image = node.view.image
    await node.controller.close()
    again = Node(disk)
    assert again.view.image == image
    assert names(image) == ["bills", "orders"]
    await again.controller.close()


@run
async def test_an_unclean_start_begins_new_leader_epochs():
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    await node.create("orders", partitions=2)
    await crash(disk)
    again = Node(disk)
    await again.register(clean=False)
    orders = again.view.image.topic("orders")
    assert orders is not None
    assert [each.leader_epoch for each in orders.partitions] == [1, 1]
    assert [each.name for each in again.deltas[-1].changed] == ["orders"]
    await again.controller.close()
