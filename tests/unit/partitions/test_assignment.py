"""The directories of partitions: found where their folders are, and offline where those are not there."""

import errno
import logging
from collections.abc import Callable

import pytest

from riverlog import Admin
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import TopicPartition
from tests.support.virtual_time import run
from tests.support.world import Universe
from tests.unit.partitions.nodes import AT, BOTH, a_node_with_two_directories, append, folders, started


async def test_a_folder_that_belongs_to_no_topic_is_set_aside_and_kept() -> None:
    universe = Universe()
    node = await started(universe)
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=1)
    append(node)
    await node.stop()
    universe.disk.rename("/data/orders-0", "/data/orders-5")
    node = await started(universe)
    (kept,) = folders(universe)
    assert kept.startswith("orders-5.")
    assert kept.endswith("-stray")
    await node.stop()


async def test_a_partition_that_lost_the_file_with_its_topics_id_is_served_all_the_same() -> None:
    universe = Universe()
    node = await started(universe)
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=1)
    append(node)
    await node.stop()
    universe.disk.remove("/data/orders-0/partition.metadata")
    node = await started(universe)
    assert folders(universe) == ["orders-0"]
    partition = node.parts.replicas.get("orders", 0)
    assert partition is not None
    assert partition.high_watermark == 1
    await node.stop()


@pytest.mark.parametrize("power_lost", [False, True])
@pytest.mark.parametrize("lost", ["emptied", "removed"])
async def test_records_without_their_topics_id_count_unless_power_was_lost(
    power_lost: bool, lost: str, caplog: pytest.LogCaptureFixture
) -> None:
    universe = Universe()
    node = await started(universe)
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=1)
    append(node)
    partition = node.parts.replicas.get("orders", 0)
    assert partition is not None
    if power_lost:  # all of it happens to be on the medium
        partition.log.flush()
        await universe.lose_power()
    else:
        await universe.kill()
    path = "/data/orders-0/partition.metadata"
    if lost == "emptied":
        universe.disk.open(path).truncate(0)
    else:
        universe.disk.remove(path)
    node = await started(universe)
    partition = node.parts.replicas.get("orders", 0)
    assert partition is not None
    assert partition.log.log_end_offset == (0 if power_lost else 1)
    told = [record.getMessage() for record in caplog.records]
    expected = "folder set aside: it belongs to no topic" if power_lost else "topic id of a folder is lost"
    assert expected in told
    await node.stop()


async def test_a_folder_without_its_topics_id_and_without_a_whole_batch_is_set_aside() -> None:
    universe = Universe()
    node = await started(universe)
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=1)
    append(node)
    await universe.kill()
    universe.disk.remove("/data/orders-0/partition.metadata")
    universe.disk.damage(f"/data/orders-0/{0:020d}.log", 70)
    node = await started(universe)
    assert [name for name in folders(universe) if name.endswith("-stray")]
    await node.stop()


def test_a_partition_whose_folder_is_gone_is_an_error_line_and_uses_no_offset_twice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        universe = Universe()
        node = await started(universe)
        async with Admin(AT, ports=universe.ports) as admin:
            await admin.create_topic("orders", partitions=2)
        for index in (0, 0, 0, 1):
            append(node, index=index)
        await node.stop()
        universe.disk.remove_folder("/data/orders-0")
        node = await started(universe)
        (line,) = caplog.records
        assert line.getMessage() == "folder of a partition is missing"
        assert line.__dict__["fields"]["partition"] == "orders-0"
        assert line.__dict__["fields"]["known_end_offset"] == 3
        append(node)
        partition = node.parts.replicas.get("orders", 0)
        assert partition is not None
        assert (partition.log.log_start_offset, partition.log.log_end_offset) == (3, 4)
        await node.stop()
        caplog.clear()
        node = await started(universe)
        await node.stop()
        assert caplog.records == []

    with caplog.at_level(logging.ERROR, logger="riverlog"):
        run(scenario())


async def test_several_directories_share_the_partitions() -> None:
    universe = Universe()
    both = "/data,/more"
    node = await started(universe, log_dirs=both)
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=4)
    for index in range(4):
        append(node, index=index)
    directories = [node.parts.registry.directory_of.get(TopicPartition("orders", index)) for index in range(4)]
    paths = [directory.logs.folder for directory in directories if directory is not None]
    assert sorted(paths) == ["/data", "/data", "/more", "/more"]
    await node.stop()
    node = await started(universe, log_dirs=both)
    for index in range(4):
        partition = node.parts.replicas.get("orders", index)
        assert partition is not None
        assert partition.high_watermark == 1
    await node.stop()


@pytest.mark.parametrize("starts", [1, 2])
async def test_what_lies_in_a_directory_that_is_not_mounted_is_offline_and_never_begun_anew(starts: int) -> None:
    universe = Universe()
    index = await a_node_with_two_directories(universe)
    universe.disk.rename("/more", "/unmounted")
    for _ in range(starts):
        node = await started(universe, log_dirs=BOTH)
        with pytest.raises(Refusal, match="is away; mount it") as refused:
            append(node, index=index)
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert universe.disk.list("/data").count(f"orders-{index}") == 0
        assert not universe.disk.exists("/more/meta.properties")
        append(node, index=1 - index % 2)
        assert "/more" in (node.not_ready() or "")
        assert [(each.directory, each.online) for each in node.parts.metrics.log_directories()] == [
            ("/data", True),
            ("/more", False),
        ]
        async with Admin(AT, ports=universe.ports) as admin:
            (topic,) = await admin.describe_topics(["orders"])
            assert [each.leader for each in topic.partitions].count(-1) == 2
        await node.stop()
    if universe.disk.exists("/more"):
        universe.disk.remove_folder("/more")
    universe.disk.rename("/unmounted", "/more")
    node = await started(universe, log_dirs=BOTH)
    assert node.not_ready() is None
    append(node, index=index)
    partition = node.parts.replicas.get("orders", index)
    assert partition is not None
    assert partition.high_watermark == 2
    await node.stop()


async def test_a_directory_that_cannot_be_opened_is_offline_and_the_others_serve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    universe = Universe()
    index = await a_node_with_two_directories(universe)
    open_, list_ = universe.disk.open, universe.disk.list

    def refuse(path: str) -> None:
        if path.startswith("/more"):
            raise PermissionError(errno.EACCES, "Permission denied", path)

    for name, call in (("open", open_), ("list", list_)):
        with monkeypatch.context() as patch:

            def denied(path: str, _call: Callable[..., object] = call, **given: bool) -> object:
                refuse(path)
                return _call(path, **given)

            patch.setattr(universe.disk, name, denied)
            node = await started(universe, log_dirs=BOTH)
            assert "Permission denied" in (node.not_ready() or "")
            with pytest.raises(Refusal):
                append(node, index=index)
            append(node, index=1 - index % 2)
            await node.stop()
    node = await started(universe, log_dirs=BOTH)
    append(node, index=index)
    await node.stop()


async def test_the_folder_counts_that_the_metadata_name_and_none_where_they_name_no_one() -> None:
    universe = Universe()
    index = await a_node_with_two_directories(universe)
    universe.disk.make_folder(f"/data/orders-{index}")
    for name in ("partition.metadata", "00000000000000000000.log"):
        content = universe.disk.content(f"/more/orders-{index}/{name}")
        universe.disk.open(f"/data/orders-{index}/{name}", create=True).write(0, [content])
    node = await started(universe, log_dirs=BOTH)
    directory = node.parts.registry.directory_of.get(TopicPartition("orders", index))
    assert directory is not None
    assert directory.logs.folder == "/more"
    await node.stop()
    node = await started(universe, log_dirs="/data,/third,/more")
    assert node.parts.registry.directory_of.get(TopicPartition("orders", index)) is not None
    await node.stop()


async def test_a_partition_with_several_folders_of_which_none_counts_is_offline() -> None:
    universe = Universe()
    node = await started(universe, log_dirs="/data,/more,/third")
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=3)
    for index in range(3):
        append(node, index=index)
    await node.stop()
    (lies,) = [index for index in range(3) if universe.disk.exists(f"/third/orders-{index}")]
    for folder in ("/data", "/more"):
        universe.disk.make_folder(f"{folder}/orders-{lies}")
        content = universe.disk.content(f"/third/orders-{lies}/partition.metadata")
        universe.disk.open(f"{folder}/orders-{lies}/partition.metadata", create=True).write(0, [content])
    universe.disk.remove_folder(f"/third/orders-{lies}")
    node = await started(universe, log_dirs="/data,/more,/third")
    with pytest.raises(Refusal, match=f"/data/orders-{lies} and /more/orders-{lies}"):
        append(node, index=lies)
    await node.stop()


async def test_a_folder_of_the_past_that_cannot_be_set_aside_is_not_taken_for_the_present_one() -> None:
    universe = Universe()
    node = await started(universe)
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=1)
    append(node)
    await node.stop()
    universe.disk.rename("/data/orders-0", "/data/bills-0")
    rename, refused = universe.disk.rename, [True]

    def full(source: str, target: str) -> None:
        if refused[0] and "bills" in source:
            raise OSError(errno.ENOSPC, "No space left on device", source)
        rename(source, target)

    universe.disk.rename = full  # type: ignore[method-assign]
    node = await started(universe)
    assert not node.parts.registry.directories[0].health.offline
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("bills", partitions=1)
    with pytest.raises(Refusal, match="cannot be set aside now"):
        append(node, "bills")
    refused[0] = False
    node.parts.registry.directories[0].health.look()
    append(node, "bills")
    partition = node.parts.replicas.get("bills", 0)
    assert partition is not None
    assert partition.high_watermark == 1
    await node.stop()


async def test_a_folder_that_was_moved_by_hand_is_found_where_it_is() -> None:
    universe = Universe()
    index = await a_node_with_two_directories(universe)
    universe.disk.make_folder(f"/data/orders-{index}")
    for name in universe.disk.list(f"/more/orders-{index}"):
        content = universe.disk.content(f"/more/orders-{index}/{name}")
        universe.disk.open(f"/data/orders-{index}/{name}", create=True).write(0, [content])
    universe.disk.remove_folder(f"/more/orders-{index}")
    node = await started(universe, log_dirs=BOTH)
    partition = node.parts.replicas.get("orders", index)
    assert partition is not None
    assert partition.high_watermark == 1
    assert node.parts.assignment.found_elsewhere() == {}
    await node.stop()
