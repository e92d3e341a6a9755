"""The table of partitions: what is open, what only has a folder, and in which directory it lies."""

from riverlog import Admin
from riverlog.model.ids import TopicPartition
from tests.support.world import Universe
from tests.unit.partitions.nodes import AT, BOTH, append, started


async def test_a_partition_is_found_in_its_directory_and_is_unopened_until_somebody_asks() -> None:
    universe = Universe()
    node = await started(universe, log_dirs=BOTH)
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=2)
    append(node)
    append(node, index=1)
    await node.stop()
    node = await started(universe, log_dirs=BOTH)
    registry = node.parts.registry
    assert registry.is_complete
    assert registry.has_unopened
    assert sorted(registry.unopened()) == [TopicPartition("orders", 0), TopicPartition("orders", 1)]
    append(node)
    (partition,) = registry.list_opened()
    (directory,) = [each for each in registry.directories if list(registry.opened_in(each))]
    assert registry.directory_of[partition.name] is directory
    assert registry.high_watermarks(directory) == {TopicPartition("orders", 0): 2}
    assert list(registry.unopened()) == [TopicPartition("orders", 1)]
    assert [health.path for health in registry.health()] == ["/data", "/more"]
    await node.stop()
