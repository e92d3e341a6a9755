"""What a scrape sees of a node: its partitions, used or not, and its log directories."""

from riverlog import Admin, Producer
from tests.support.world import Universe


async def test_a_scrape_sees_partitions_and_directories() -> None:
    universe = Universe()
    node = universe.node()
    await node.start()
    async with Admin("node:9092", ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=2)
    async with Producer("node:9092", ports=universe.ports) as producer:
        await producer.send("orders", b"value", partition=1)
    metrics = node.parts.metrics
    assert [(each.partition, each.high_watermark) for each in metrics.partitions()] == [(0, 0), (1, 1)]
    assert list(metrics.topics()) == [("orders", 2)]
    assert [each.address for each in metrics.brokers()] == ["node:9092"]
    (directory,) = metrics.log_directories()
    assert directory.online
    assert directory.size_bytes == sum(each.size_bytes for each in metrics.partitions()) > 0
    assert list(metrics.pipelines()) == []
    await node.stop()
