"""What a node does by itself: retention, checkpoints, and looking at its disks."""

import asyncio

from riverlog import Admin, Producer
from riverlog.log.checkpoint import decode_offsets, read_file
from riverlog.model.ids import TopicPartition
from tests.support.world import Universe

AT = "node:9092"
HOUR_MS = 3_600_000


async def test_old_segments_go_and_their_files_follow() -> None:
    universe = Universe()
    node = universe.node(log_segment_bytes="1024")
    await node.start()
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=1, configs={"retention.ms": str(HOUR_MS)})
    async with Producer(AT, ports=universe.ports) as producer:
        for number in range(20):
            await producer.send("orders", b"%d" % number * 200)
    partition = node.parts.replicas.get("orders", 0)
    assert partition is not None
    assert len(partition.log.segments) > 5
    await asyncio.sleep(2 * HOUR_MS / 1000)
    assert partition.log.log_start_offset == 20
    assert len(partition.log.segments) == 1
    logs = [name for name in universe.disk.list("/data/orders-0") if ".log" in name]
    assert logs == ["00000000000000000020.log"]
    await node.stop()


async def test_recovery_points_are_written_down() -> None:
    universe = Universe()
    node = universe.node(durability="fsync")
    await node.start()
    async with Producer(AT, ports=universe.ports) as producer:
        await producer.send("orders", b"a")
    await asyncio.sleep(61)
    path = "/data/recovery-point-offset-checkpoint"
    points = decode_offsets(read_file(universe.disk, path) or b"", path)
    assert points[TopicPartition("orders", 0)] == 1
    await node.stop()
