"""The view: what it publishes, to whom, and when."""

from riverlog.metadata.commands.configs import AlterConfigs, ConfigChange, ResourceChanges
from riverlog.metadata.commands.topics import CreateTopics, DeleteTopics
from riverlog.metadata.image import ConfigResourceType
from riverlog.wire.messages.incremental_alter_configs import ConfigOperation
from tests.support.disk import MemoryDisk
from tests.unit.controller.metadata_node import Node, names, run, topic


@run
async def test_watchers_hear_of_a_change_before_the_reply_comes():
    node = Node(MemoryDisk())
    await node.register()
    node.deltas.clear()
    created = node.controller.submit(CreateTopics((topic("orders", 2),)))
    assert names(node.view.image) == []
    await created
    assert [each.name for each in node.deltas[0].created] == ["orders"]
    assert node.deltas[0].image is node.view.image
    orders = node.view.image.topic("orders")
    assert orders is not None
    await node.controller.submit(DeleteTopics((orders.id,)))
    assert node.deltas[-1].deleted == (orders,)
    await node.controller.close()


@run
async def test_settings_of_the_node_change_while_it_runs():
    disk = MemoryDisk()
    node = Node(disk, log_retention_ms="5")
    await node.register()
    await node.create("orders")
    assert node.view.topic_config("orders").retention_ms == 5
    set_seven = ConfigChange("log.retention.ms", ConfigOperation.SET, "7")
    await node.controller.submit(AlterConfigs((ResourceChanges(ConfigResourceType.BROKER, "", (set_seven,)),)))
    assert node.deltas[-1].nodes_configured
    assert node.view.topic_config("orders").retention_ms == 7
    set_nine = ConfigChange("retention.ms", ConfigOperation.SET, "9")
    await node.controller.submit(AlterConfigs((ResourceChanges(ConfigResourceType.TOPIC, "orders", (set_nine,)),)))
    assert [each.name for each in node.deltas[-1].configured] == ["orders"]
    assert node.view.topic_config("orders").retention_ms == 9
    await node.controller.close()
    again = Node(disk, log_retention_ms="5")
    assert again.view.topic_config("other").retention_ms == 7
    await again.controller.close()
