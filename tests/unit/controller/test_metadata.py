"""The metadata driver: what it publishes, to whom, and when."""

import asyncio

from riverlog.metadata.commands.configs import AlterConfigs, ConfigChange, ResourceChanges
from riverlog.metadata.commands.topics import CreateTopics, DeleteTopics
from riverlog.metadata.image import ConfigResourceType
from riverlog.wire.messages.incremental_alter_configs import ConfigOperation
from tests.support.disk import MemoryDisk
from tests.unit.controller.metadata_node import Node, crash, names, run, topic


@run
async def test_metadata_survives_a_restart():
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    await node.create("orders", "bills", partitions=3)
    image = node.driver.image
    await node.driver.close()
    again = Node(disk)
    assert again.driver.image == image
    assert names(image) == ["bills", "orders"]
    await again.driver.close()


@run
async def test_watchers_hear_of_a_change_before_the_reply_comes():
    node = Node(MemoryDisk())
    await node.register()
    node.deltas.clear()
    created = node.driver.submit(CreateTopics((topic("orders", 2),)))
    assert names(node.driver.image) == []
    await created
    assert [each.name for each in node.deltas[0].created] == ["orders"]
    assert node.deltas[0].image is node.driver.image
    orders = node.driver.image.topic("orders")
    assert orders is not None
    await node.driver.submit(DeleteTopics((orders.id,)))
    assert node.deltas[-1].deleted == (orders,)
    await node.driver.close()


@run
async def test_settings_of_the_node_change_while_it_runs():
    disk = MemoryDisk()
    node = Node(disk, log_retention_ms="5")
    await node.register()
    await node.create("orders")
    assert node.driver.topic_config("orders").retention_ms == 5
    set_seven = ConfigChange("log.retention.ms", ConfigOperation.SET, "7")
    await node.driver.submit(AlterConfigs((ResourceChanges(ConfigResourceType.BROKER, "", (set_seven,)),)))
    assert node.deltas[-1].nodes_configured
    assert node.driver.topic_config("orders").retention_ms == 7
    set_nine = ConfigChange("retention.ms", ConfigOperation.SET, "9")
    await node.driver.submit(AlterConfigs((ResourceChanges(ConfigResourceType.TOPIC, "orders", (set_nine,)),)))
    assert [each.name for each in node.deltas[-1].configured] == ["orders"]
    assert node.driver.topic_config("orders").retention_ms == 9
    await node.driver.close()
    again = Node(disk, log_retention_ms="5")
    assert again.driver.topic_config("other").retention_ms == 7
    await again.driver.close()


@run
async def test_producer_ids_are_never_given_twice():
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    taken = await asyncio.gather(*(node.driver.next_producer_id() for _ in range(1_500)))
    assert sorted(taken) == list(range(1_500))
    await node.driver.close()
    again = Node(disk)
    assert await again.driver.next_producer_id() == 2_000
    await again.driver.close()


@run
async def test_an_unclean_start_begins_new_leader_epochs():
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    await node.create("orders", partitions=2)
    await crash(disk)
    again = Node(disk)
    await again.register(clean=False)
    orders = again.driver.image.topic("orders")
    assert orders is not None
    assert [each.leader_epoch for each in orders.partitions] == [1, 1]
    assert [each.name for each in again.deltas[-1].changed] == ["orders"]
    await again.driver.close()
