"""The metadata driver on its local log: durable before it answers, whole after a crash, silent about nothing."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from random import Random
from uuid import UUID

import pytest

from riverlog.drivers.metadata import MetadataDriver
from riverlog.drivers.metadata_log import MetadataLog
from riverlog.drivers.metadata_snapshot import BadMetadata, decode_snapshot, encode_snapshot, snapshot_offset
from riverlog.metadata.commands.brokers import RegisterBroker
from riverlog.metadata.commands.configs import AlterConfigs, ConfigChange, ResourceChanges
from riverlog.metadata.commands.topics import CreateTopics, DeleteTopics, NewTopic
from riverlog.metadata.delta import MetadataDelta
from riverlog.metadata.image import ConfigResourceType, MetadataImage
from riverlog.metadata.snapshot import snapshot_records
from riverlog.model.endpoints import Endpoint
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import LeaderEpoch, NodeId, TopicId
from riverlog.model.resolve import configure
from riverlog.records.errors import CorruptBatch
from riverlog.wire.messages.incremental_alter_configs import ConfigOperation
from tests.support.disk import MemoryDisk

FOLDER = "/data/__cluster_metadata-0"
SEGMENT = f"{FOLDER}/{0:020}.log"


class StillClock:
    def monotonic(self) -> float:
        return 1.0

    def wall_ms(self) -> int:
        return 1_700_000_000_000


class TurnLater:
    """Workers that do their work on a later turn of the loop."""

    def run(self, work: Callable[[], None]) -> Awaitable[None]:
        async def later() -> None:
            await asyncio.sleep(0)
            work()

        return asyncio.ensure_future(later())


class Node:
    """A metadata driver over a disk, from start to stop or crash."""

    def __init__(self, disk: MemoryDisk, **settings: str) -> None:
        self.failures: list[Exception] = []
        self.deltas: list[MetadataDelta] = []
        disk.make_folder("/data")
        disk.sync_folder("/")
        self.log = MetadataLog.open(disk, StillClock(), TurnLater(), FOLDER)
        self.driver = MetadataDriver(
            log=self.log,
            settings=configure(flags={name.replace("_", "."): value for name, value in settings.items()}).settings,
            clock=StillClock(),
            failed=self.failures.append,
        )
        self.driver.start()
        self.driver.watch(self.deltas.append)

    async def register(self, *, clean: bool = True) -> None:
        await self.driver.submit(
            RegisterBroker(
                NodeId(1), UUID(int=7), (Endpoint("PLAINTEXT", "localhost", 9092),), None, (UUID(int=8),), clean
            )
        )

    async def create(self, *names: str, partitions: int = 1) -> None:
        created = await self.driver.submit(CreateTopics(tuple(topic(name, partitions) for name in names)))
        assert [each.outcome.code for each in created.topics] == [ErrorCode.NONE] * len(names)


def topic(name: str, partitions: int = 1) -> NewTopic:
    return NewTopic(name, TopicId(UUID(int=Random(name).getrandbits(128), version=4)), partitions)


def names(image: MetadataImage) -> list[str]:
    return [each.name for each in image.all_topics()]


def run(test):
    """Run an async test on a loop of its own."""

    def wrapped():
        asyncio.run(test())

    wrapped.__name__ = test.__name__
    return wrapped


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
async def test_what_was_acknowledged_survives_a_crash():
    for seed in range(20):
        disk = MemoryDisk(seed)
        node = Node(disk)
        await node.register()
        await node.create("first")
        await node.create("second")
        under_way = node.driver.submit(CreateTopics((topic("third"),)))
        await asyncio.sleep(0)
        disk.crash()
        under_way.cancel()
        again = Node(disk)
        assert names(again.driver.image)[:2] == ["first", "second"]


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
async def test_commands_that_come_together_share_a_flush():
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    syncs = []
    step = disk.step
    disk.step = lambda kind, path: (syncs.append(path) if kind == "sync" else None, step(kind, path))[1]  # type: ignore[method-assign]  # counts
    await asyncio.gather(*(node.driver.submit(CreateTopics((topic(f"t{number}"),))) for number in range(50)))
    assert len(node.driver.image.topics) == 50
    assert len([path for path in syncs if path == SEGMENT]) <= 2
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
async def test_a_full_disk_refuses_and_later_goes_on():
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    disk.fail(0, errno.ENOSPC, on=("write",))
    with pytest.raises(Refusal) as refused:
        await node.create("orders")
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert names(node.driver.image) == []
    disk.heal()
    await node.create("orders")
    assert node.failures == []
    image = node.driver.image
    await node.driver.close()
    assert Node(disk).driver.image == image


@run
async def test_a_failed_flush_is_final():
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    disk.fail(0, errno.EIO, on=("sync",))
    with pytest.raises(OSError, match=r"."):
        await node.create("orders")
    assert len(node.failures) == 1
    await node.driver.close()


@run
async def test_a_snapshot_replaces_what_lies_below_it():
    disk = MemoryDisk()
    node = Node(disk, metadata_log_max_record_bytes_between_snapshots="4096")
    await node.register()
    for number in range(100):
        await node.create(f"t{number}", partitions=3)
        await asyncio.sleep(0)
    image = node.driver.image
    await node.driver.close()
    files = disk.list(FOLDER)
    snapshots = [name for name in files if name.endswith(".checkpoint")]
    assert len(snapshots) == 1
    assert snapshot_offset(snapshots[0]) > 100
    assert f"{0:020}.log" not in files
    again = Node(disk)
    assert again.driver.image == image
    await again.create("more")
    await again.driver.close()
    assert "more" in names(Node(disk).driver.image)


@run
async def test_crashes_while_snapshots_are_written_lose_nothing():
    for seed in range(25):
        disk = MemoryDisk(seed)
        node = Node(disk, metadata_log_max_record_bytes_between_snapshots="1024")
        await node.register()
        acknowledged = []
        for number in range(30):
            await node.create(f"t{number:02}", partitions=2)
            acknowledged.append(f"t{number:02}")
            if number == 5 + seed:
                break
        await asyncio.sleep(0)
        disk.crash()
        assert names(Node(disk).driver.image) == acknowledged


async def damaged_node(position: int) -> MemoryDisk:
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    await node.create("first")
    await node.create("second")
    await node.driver.close()
    disk.damage(SEGMENT, position)
    return disk


@run
async def test_damage_in_the_middle_stops_the_node_and_changes_nothing():
    for position in (20, 70, 300):
        disk = await damaged_node(position)
        size = disk.open(SEGMENT).size()
        with pytest.raises(BadMetadata, match="is damaged at position") as refused:
            Node(disk)
        assert FOLDER in str(refused.value)
        assert str(refused.value).endswith("put the folder back from a copy and start again.")
        assert disk.open(SEGMENT).size() == size


@run
async def test_a_damaged_snapshot_stops_the_node():
    disk = MemoryDisk()
    node = Node(disk, metadata_log_max_record_bytes_between_snapshots="1024")
    await node.register()
    for number in range(30):
        await node.create(f"t{number}", partitions=2)
        await asyncio.sleep(0)
    await node.driver.close()
    snapshot = next(name for name in disk.list(FOLDER) if name.endswith(".checkpoint"))
    disk.damage(f"{FOLDER}/{snapshot}", 200)
    with pytest.raises(BadMetadata, match="checksum"):
        Node(disk)


@run
async def test_a_missing_snapshot_stops_the_node():
    disk = MemoryDisk()
    node = Node(disk, metadata_log_max_record_bytes_between_snapshots="1024")
    await node.register()
    for number in range(30):
        await node.create(f"t{number}", partitions=2)
        await asyncio.sleep(0)
    await node.driver.close()
    for name in disk.list(FOLDER):
        if name.endswith(".checkpoint"):
            disk.remove(f"{FOLDER}/{name}")
    with pytest.raises(BadMetadata, match="are needed from 0 on"):
        Node(disk)


@run
async def test_an_unclean_start_begins_new_leader_epochs():
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    await node.create("orders", partitions=2)
    disk.crash()
    again = Node(disk)
    await again.register(clean=False)
    orders = again.driver.image.topic("orders")
    assert orders is not None
    assert [each.leader_epoch for each in orders.partitions] == [1, 1]
    assert [each.name for each in again.deltas[-1].changed] == ["orders"]
    await again.driver.close()


def test_a_snapshot_needs_its_beginning_and_its_end():
    whole = encode_snapshot(snapshot_records(MetadataImage()), LeaderEpoch(1), 5)
    assert list(decode_snapshot(whole)) == []
    for cut in (whole[:-10], whole[: len(whole) // 2], b""):
        with pytest.raises(CorruptBatch):
            list(decode_snapshot(cut))


@pytest.mark.parametrize("name", ["x.checkpoint", "0-0.checkpoint", f"{1:020}-{1:09}.checkpoint"])
def test_a_strange_snapshot_name_is_refused(name):
    with pytest.raises(BadMetadata, match="not the name of a snapshot"):
        snapshot_offset(f"/data/{name}")
