"""The local metadata log: whole after a crash, refused when it is damaged, never larger than it must be."""

import asyncio
import errno
from itertools import pairwise

import pytest

from riverlog.controller.snapshot_files import BadMetadata, snapshot_id
from riverlog.log.checkpoint import read_file
from riverlog.metadata.commands.topics import CreateTopics
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.records.record import read_batches
from riverlog.runner import Stopped
from tests.support.disk import MemoryDisk
from tests.unit.controller.metadata_node import FOLDER, SEGMENT, Node, crash, names, run, topic


@run
async def test_commands_that_come_together_share_a_flush():
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    syncs = []
    step = disk.step
    disk.step = lambda kind, path: (syncs.append(path) if kind == "sync" else None, step(kind, path))[1]  # type: ignore[method-assign]  # counts
    await asyncio.gather(*(node.controller.submit(CreateTopics((topic(f"t{number}"),))) for number in range(50)))
    assert len(node.view.image.topics) == 50
    assert len([path for path in syncs if path == SEGMENT]) <= 2
    await node.controller.close()


@run
async def test_a_full_disk_refuses_and_later_goes_on():
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    disk.fail(0, errno.ENOSPC, on=("write",))
    with pytest.raises(Refusal) as refused:
        await node.create("orders")
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert names(node.view.image) == []
    disk.heal()
    await node.create("orders")
    assert node.failures == []
    image = node.view.image
    await node.controller.close()
    assert Node(disk).view.image == image


@run
async def test_nothing_is_written_that_was_decided_on_records_that_were_not():
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    disk.fail(0, errno.ENOSPC, on=("write",))
    write, late = node.log.storage.append, []

    def come() -> None:
        """Ask for something in the moment between the failure and the news of it; there is room again."""
        disk.heal()
        late.append(node.controller.submit(CreateTopics((topic("late"),))))

    def fail(batch, epoch):
        node.log.storage.append = write
        asyncio.get_running_loop().call_soon(come)
        return write(batch, epoch)

    node.log.storage.append = fail
    with pytest.raises(Refusal):
        await node.create("orders")
    with pytest.raises(Refusal):
        await late[0]
    await node.create("next")
    assert names(node.view.image) == ["next"]
    await node.controller.close()
    assert names(Node(disk).view.image) == ["next"]


@run
async def test_a_failed_flush_is_final():
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    disk.fail(0, errno.EIO, on=("sync",))
    with pytest.raises(OSError, match=r"."):
        await node.create("orders")
    assert len(node.failures) == 1
    await node.controller.close()


@run
async def test_what_is_not_possible_for_want_of_descriptors_is_waited_out():
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    for kinds in (("write",), ("open",), ("open", "write", "read")):
        disk.fail(0, errno.EMFILE, on=kinds, lasting=True)
        creating = asyncio.create_task(node.create(f"orders{len(names(node.view.image))}"))
        await asyncio.sleep(1)
        disk.heal()
        await creating
    assert len(names(node.view.image)) == 3
    assert node.failures == []
    image = node.view.image
    await node.controller.close()
    assert Node(disk).view.image == image


@run
async def test_a_flush_that_failed_for_want_of_memory_is_final():
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    disk.fail(0, errno.ENOMEM, on=("sync",))
    with pytest.raises(OSError, match=r"."):
        await node.create("orders")
    assert len(node.failures) == 1
    await node.controller.close()


@run
async def test_a_node_that_can_write_no_metadata_for_long_ends():
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    disk.fail(0, errno.EMFILE, on=("write",), lasting=True)
    with pytest.raises(OSError, match=r"."):
        await node.create("orders")
    assert len(node.failures) == 1
    disk.heal()
    await node.controller.close()


@run
async def test_a_snapshot_replaces_what_lies_below_it():
    disk = MemoryDisk()
    node = Node(disk, metadata_log_max_record_bytes_between_snapshots="4096")
    await node.register()
    for number in range(100):
        await node.create(f"t{number}", partitions=3)
        await asyncio.sleep(0)
    image = node.view.image
    await node.controller.close()
    files = disk.list(FOLDER)
    snapshots = [name for name in files if name.endswith(".checkpoint")]
    assert len(snapshots) == 1
    assert snapshot_id(snapshots[0]).end_offset > 100
    assert f"{0:020}.log" not in files
    again = Node(disk)
    assert again.view.image == image
    await again.create("more")
    await again.controller.close()
    assert "more" in names(Node(disk).view.image)


@run
async def test_segments_go_one_by_one_with_their_names_durable_before_each():
    disk = MemoryDisk()
    node = Node(disk, metadata_log_max_record_bytes_between_snapshots="4096")
    await node.register()
    steps: list[str] = []
    disk.before_step = lambda kind, path: steps.append(f"{kind} {path[-4:]}")
    for number in range(3):
        await node.create(f"t{number}")
        node.log.storage.log.roll(0)
    for number in range(100):
        await node.create(f"more{number}")
        await asyncio.sleep(0)
    await node.controller.close()
    order = [step for step in steps if step == "rename .log" or step.startswith("sync_folder")]
    assert order.count("rename .log") > 3
    assert all(before.startswith("sync_folder") for before, step in pairwise(order) if step == "rename .log")


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
        await crash(disk)
        assert names(Node(disk).view.image) == acknowledged


@run
async def test_names_that_a_failed_sync_lost_hold_nothing_that_is_acknowledged():
    failed = 0
    for error in (errno.EIO, errno.ENOSPC):
        for after in range(30):
            disk = MemoryDisk(after)
            node = Node(disk, metadata_log_max_record_bytes_between_snapshots="1")
            await node.register()
            disk.fail(after, error, on=("sync_folder",))
            acknowledged = []
            for number in range(12):
                try:
                    await node.create(f"t{number:02}")
                except (OSError, Stopped):
                    failed += 1
                    break
                acknowledged.append(f"t{number:02}")
                await asyncio.sleep(0)
            await crash(disk)
            assert names(Node(disk).view.image)[: len(acknowledged)] == acknowledged
    assert failed > 20


async def damaged_node(position: int) -> MemoryDisk:
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    await node.create("first")
    await node.create("second")
    await node.controller.close()
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
async def test_what_no_checksum_covers_is_checked_all_the_same():
    for position, batch in ((7, 0), (15, 0), (7, 1), (15, 1), (7, 2)):
        disk = await damaged_node(0)
        disk.damage(SEGMENT, 0)  # as it was
        starts = [header.base_offset for header, _ in read_batches(read_file(disk, SEGMENT) or b"")]
        at = 0
        for header, _ in list(read_batches(read_file(disk, SEGMENT) or b""))[:batch]:
            at += header.size
        disk.damage(SEGMENT, at + position)
        before = read_file(disk, SEGMENT)
        with pytest.raises(BadMetadata, match="behind offset"):
            Node(disk)
        assert read_file(disk, SEGMENT) == before, starts


@run
async def test_after_a_clean_stop_nothing_can_be_torn():
    disk = await damaged_node(0)
    disk.damage(SEGMENT, 0)  # as it was
    size = disk.open(SEGMENT).size()
    disk.damage(SEGMENT, size - 5)
    with pytest.raises(BadMetadata, match="is damaged at position"):
        Node(disk, after_clean_stop=True)
    assert disk.open(SEGMENT).size() == size
    await Node(disk).controller.close()  # after a crash it may have been torn


@run
async def test_records_that_were_flushed_are_missed():
    disk = MemoryDisk()
    node = Node(disk)
    await node.register()
    await node.create("orders")
    assert node.flushed == node.controller.end_offset > 3
    await node.controller.close()
    disk.damage(SEGMENT, disk.open(SEGMENT).size() - 5)
    with pytest.raises(BadMetadata, match=f"and were there up to {node.flushed}"):
        Node(disk, flushed=node.flushed)
    for name in disk.list(FOLDER):
        disk.remove(f"{FOLDER}/{name}")
    with pytest.raises(BadMetadata, match=f"end at offset 0, and were there up to {node.flushed}"):
        Node(disk, flushed=node.flushed)


@run
async def test_older_snapshots_that_a_crash_left_go_once_the_newest_was_read():
    disk = MemoryDisk()
    node = Node(disk, metadata_log_max_record_bytes_between_snapshots="1024")
    await node.register()
    for number in range(30):
        await node.create(f"t{number}", partitions=2)
    await node.controller.close()
    [newest] = [name for name in disk.list(FOLDER) if name.endswith(".checkpoint")]
    content = read_file(disk, f"{FOLDER}/{newest}") or b""
    for name in (f"{5:020}-{1:010}.checkpoint", f"{7:020}-{1:010}.checkpoint"):
        disk.open(f"{FOLDER}/{name}", create=True).write(0, [content])
    await Node(disk).controller.close()
    assert [name for name in disk.list(FOLDER) if name.endswith(".checkpoint")] == [newest]


@run
async def test_a_damaged_snapshot_stops_the_node():
    disk = MemoryDisk()
    node = Node(disk, metadata_log_max_record_bytes_between_snapshots="1024")
    await node.register()
    for number in range(30):
        await node.create(f"t{number}", partitions=2)
        await asyncio.sleep(0)
    await node.controller.close()
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
    await node.controller.close()
    for name in disk.list(FOLDER):
        if name.endswith(".checkpoint"):
            disk.remove(f"{FOLDER}/{name}")
    with pytest.raises(BadMetadata, match="are needed from 0 on"):
        Node(disk)


@run
async def test_what_was_acknowledged_survives_a_crash():
    for seed in range(20):
        disk = MemoryDisk(seed)
        node = Node(disk)
        await node.register()
        await node.create("first")
        await node.create("second")
        under_way = node.controller.submit(CreateTopics((topic("third"),)))
        await asyncio.sleep(0)
        await crash(disk)
        under_way.cancel()
        again = Node(disk)
        assert names(again.view.image)[:2] == ["first", "second"]
