"""The partitions of a node: opened when asked for, gone when deleted, found again after a crash."""

import asyncio
import errno
from collections.abc import Callable
from typing import TypeVar

import pytest

from riverlog import Admin, Producer
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import Offset, TopicPartition
from riverlog.node import Node
from riverlog.partitions.recovery import Recovering
from tests.support.batches import batch_of
from tests.support.virtual_time import run
from tests.support.world import PatientWorkers, Universe

AT = "node:9092"
T = TypeVar("T")


async def started(universe: Universe, **settings: str) -> Node:
    node = universe.node(**settings)
    await node.start()
    return node


def append(node: Node, topic: str = "orders", index: int = 0) -> None:
    partition = node._replicas.get(topic, index)
    assert partition is not None
    partition.append(memoryview(batch_of([b"value"])), now_ms=1_700_000_000_000)


def folders(universe: Universe) -> list[str]:
    return [name for name in universe.disk.list("/data") if name.startswith("orders-")]


def test_a_thousand_partitions_are_metadata_until_they_are_used() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = await started(universe)
        async with Admin(AT, ports=universe.ports) as admin:
            await admin.create_topic("orders", partitions=1_000)
        assert folders(universe) == []
        append(node, index=7)
        assert folders(universe) == ["orders-7"]
        assert node._replicas.get("orders", 1_000) is None
        assert node._replicas.get("nothing", 0) is None
        await node.stop()

    run(scenario())


def test_settings_of_a_topic_reach_its_open_partitions() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = await started(universe)
        async with Admin(AT, ports=universe.ports) as admin:
            await admin.create_topic("orders", partitions=1)
            append(node)
            partition = node._replicas.get("orders", 0)
            assert partition is not None
            await admin.alter_configs({"retention.ms": "1234"}, topic="orders")
            assert partition.log.config.retention_ms == 1234
        await node.stop()

    run(scenario())


def test_a_deleted_partition_leaves_and_its_room_comes_back() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = await started(universe)
        async with Admin(AT, ports=universe.ports) as admin:
            await admin.create_topic("orders", partitions=2)
            append(node)
            append(node, index=1)
            await node._replicas.checkpoint()
            await admin.delete_topics(["orders"])
        assert node._replicas.get("orders", 0) is None
        await asyncio.sleep(3)
        assert folders(universe) == []
        assert not node._homes[0].directory.has_forgotten, "who makes it again need not wait for the medium"
        await node.stop()

    run(scenario())


def test_a_folder_that_belongs_to_no_topic_is_set_aside_and_kept() -> None:
    async def scenario() -> None:
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

    run(scenario())


def test_a_partition_that_lost_the_file_with_its_topics_id_is_served_all_the_same() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = await started(universe)
        async with Admin(AT, ports=universe.ports) as admin:
            await admin.create_topic("orders", partitions=1)
        append(node)
        await node.stop()
        universe.disk.remove("/data/orders-0/partition.metadata")
        node = await started(universe)
        assert folders(universe) == ["orders-0"]
        partition = node._replicas.get("orders", 0)
        assert partition is not None
        assert partition.high_watermark == 1
        await node.stop()

    run(scenario())


@pytest.mark.parametrize("stops_cleanly", [True, False])
def test_a_partition_nobody_opened_after_a_crash_is_still_recovered_later(stops_cleanly: bool) -> None:
    async def scenario() -> None:
        universe = Universe(3)
        node = await started(universe)
        async with Admin(AT, ports=universe.ports) as admin:
            await admin.create_topic("orders", partitions=1)
        for _ in range(20):
            append(node)
        await universe.lose_power()
        node = universe.node()
        await node.start()
        assert not node._homes[0].directory.clean
        if stops_cleanly:
            await node.stop()  # before upkeep had a chance to open anything
        else:
            await universe.lose_power()
        node = universe.node()
        await node.start()
        partition = node._replicas.get("orders", 0)
        assert partition is not None
        end = partition.log.log_end_offset
        read = partition.read(Offset(0), bytes_max=1 << 20, upto=end, at_least_one=True)
        assert read.size == end * (len(batch_of([b"value"])))
        await node.stop()

    run(scenario())


async def crashed(universe: Universe, partitions: int) -> Node:
    """A node that was killed after a record went into each partition of a durable topic, and runs again."""
    node = await started(universe)
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=partitions, configs={"durability": "fsync"})
    for index in range(partitions):
        append(node, index=index)
    await asyncio.sleep(1)
    await universe.lose_power()
    universe.workers = PatientWorkers(universe.random, seconds_max=1.0)
    return await started(universe)


def test_after_a_crash_partitions_recover_by_themselves() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = await crashed(universe, 3)
        assert node._replicas.opened() == []
        assert node._replicas.has_unopened
        await asyncio.sleep(9)
        assert [partition.high_watermark for partition in node._replicas.opened()] == [1, 1, 1]
        assert not node._replicas.has_unopened
        await node.stop()
        assert (await started(universe))._homes[0].directory.clean

    run(scenario())


def test_clients_wait_for_a_partition_that_recovers_and_metadata_does_not() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = await crashed(universe, 2)
        async with Admin(AT, ports=universe.ports) as admin, Producer(AT, ports=universe.ports) as producer:
            (topic,) = await admin.describe_topics(["orders"])
            assert len(topic.partitions) == 2
            with pytest.raises(Recovering):
                node._replicas.get("orders", 1)
            sent = await producer.send("orders", value=b"again", partition=1)
            assert sent.offset == 1
        await node.stop()

    run(scenario())


def test_a_topic_can_be_deleted_and_made_again_while_it_recovers() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = await crashed(universe, 2)
        name = TopicPartition("orders", 0)
        with pytest.raises(Recovering):
            node._replicas.get(*name)
        await asyncio.sleep(0.01)  # the slow work has begun
        universe.workers._seconds_max = 0.001  # type: ignore[attr-defined]
        recovery = node._replicas._recoveries[node._homes[0]]
        async with Admin(AT, ports=universe.ports) as admin:
            await admin.delete_topics(["orders"])
            await admin.create_topic("orders", partitions=2)
            assert name in recovery
        async with Producer(AT, ports=universe.ports) as producer:
            sent = await producer.send("orders", value=b"new", partition=0)
            assert sent.offset == 0
        await node.stop()

    run(scenario())


def test_a_node_that_stops_before_all_is_recovered_says_so() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = await crashed(universe, 2)
        await node.stop()
        node = await started(universe)
        assert not node._homes[0].directory.clean
        await asyncio.sleep(9)
        assert [partition.high_watermark for partition in node._replicas.opened()] == [1, 1]
        await node.stop()

    run(scenario())


def test_several_directories_share_the_partitions() -> None:
    async def scenario() -> None:
        universe = Universe()
        both = "/data,/more"
        node = await started(universe, log_dirs=both)
        async with Admin(AT, ports=universe.ports) as admin:
            await admin.create_topic("orders", partitions=4)
        for index in range(4):
            append(node, index=index)
        homes = [node._replicas.home_of(TopicPartition("orders", index)) for index in range(4)]
        paths = [home.directory.folder for home in homes if home is not None]
        assert sorted(paths) == ["/data", "/data", "/more", "/more"]
        await node.stop()
        node = await started(universe, log_dirs=both)
        for index in range(4):
            partition = node._replicas.get("orders", index)
            assert partition is not None
            assert partition.high_watermark == 1
        await node.stop()

    run(scenario())


BOTH = "/data,/more"


async def a_node_with_two_directories(universe: Universe) -> int:
    """Run a node with a record in each of four partitions, and stop it; say which of them lies in the second one."""
    node = await started(universe, log_dirs=BOTH)
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=4)
    for index in range(4):
        append(node, index=index)
    (lies, *_) = [index for index in range(4) if universe.disk.exists(f"/more/orders-{index}")]
    await node.stop()
    return lies


@pytest.mark.parametrize("starts", [1, 2])
def test_what_lies_in_a_directory_that_is_not_mounted_is_offline_and_never_begun_anew(starts: int) -> None:
    async def scenario() -> None:
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
            assert [(each.directory, each.online) for each in node.log_directories()] == [
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
        partition = node._replicas.get("orders", index)
        assert partition is not None
        assert partition.high_watermark == 2
        await node.stop()

    run(scenario())


def test_a_directory_that_cannot_be_opened_is_offline_and_the_others_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
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

    run(scenario())


def test_the_folder_counts_that_the_metadata_name_and_none_where_they_name_no_one() -> None:
    async def scenario() -> None:
        universe = Universe()
        index = await a_node_with_two_directories(universe)
        universe.disk.make_folder(f"/data/orders-{index}")
        for name in ("partition.metadata", "00000000000000000000.log"):
            content = universe.disk.content(f"/more/orders-{index}/{name}")
            universe.disk.open(f"/data/orders-{index}/{name}", create=True).write(0, [content])
        node = await started(universe, log_dirs=BOTH)
        home = node._replicas.home_of(TopicPartition("orders", index))
        assert home is not None
        assert home.directory.folder == "/more"
        await node.stop()
        node = await started(universe, log_dirs="/data,/third,/more")
        assert node._replicas.home_of(TopicPartition("orders", index)) is not None
        await node.stop()

    run(scenario())


def test_a_partition_with_several_folders_of_which_none_counts_is_offline() -> None:
    async def scenario() -> None:
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

    run(scenario())


def test_a_folder_of_the_past_that_cannot_be_set_aside_is_not_taken_for_the_present_one() -> None:
    async def scenario() -> None:
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
        assert not node._homes[0].volume.offline
        async with Admin(AT, ports=universe.ports) as admin:
            await admin.create_topic("bills", partitions=1)
        with pytest.raises(Refusal, match="cannot be set aside now"):
            append(node, "bills")
        refused[0] = False
        node._homes[0].volume.look()
        append(node, "bills")
        partition = node._replicas.get("bills", 0)
        assert partition is not None
        assert partition.high_watermark == 1
        await node.stop()

    run(scenario())


def test_a_folder_that_was_moved_by_hand_is_found_where_it_is() -> None:
    async def scenario() -> None:
        universe = Universe()
        index = await a_node_with_two_directories(universe)
        universe.disk.make_folder(f"/data/orders-{index}")
        for name in universe.disk.list(f"/more/orders-{index}"):
            content = universe.disk.content(f"/more/orders-{index}/{name}")
            universe.disk.open(f"/data/orders-{index}/{name}", create=True).write(0, [content])
        universe.disk.remove_folder(f"/more/orders-{index}")
        node = await started(universe, log_dirs=BOTH)
        partition = node._replicas.get("orders", index)
        assert partition is not None
        assert partition.high_watermark == 1
        assert node._replicas.found_elsewhere() == {}
        await node.stop()

    run(scenario())


class LateWorkers(PatientWorkers):
    """Workers that are busy with something else at first."""

    async def _later(self, work: Callable[[], T]) -> T:
        await asyncio.sleep(1)
        return work()


def test_a_checkpoint_that_was_begun_is_written_before_the_node_goes_on_to_stop() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = await started(universe)
        node._replicas._workers = LateWorkers(universe.random)
        checkpointing = asyncio.create_task(node._replicas.checkpoint())
        await asyncio.sleep(0.5)
        checkpointing.cancel()
        await asyncio.wait([checkpointing])
        assert checkpointing.cancelled()
        assert [name for name in universe.disk.list("/data") if name.endswith(".planned")]
        await node.stop()

    run(scenario())


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENOMEM, errno.EACCES])
def test_no_call_that_is_not_possible_now_takes_a_directory_offline(error: int) -> None:
    async def scenario() -> None:
        universe = Universe()
        node = await started(universe, log_segment_bytes="1024", durability="fsync")
        async with Admin(AT, ports=universe.ports) as admin:
            await admin.create_topic("orders", partitions=2)
        sent = 0
        async with Producer(AT, ports=universe.ports) as producer:
            for round_ in range(30):
                universe.disk.fail(round_ % 7, error, on=("open", "create", "read", "write"))
                await producer.send("orders", value=b"v" * 300, partition=0)
                sent += 1
                await asyncio.sleep(0.5)
                universe.disk.heal()
        assert node.not_ready() is None
        partition = node._replicas.get("orders", 0)
        assert partition is not None
        assert partition.high_watermark >= sent
        await node.stop()
        assert (await started(universe))._homes[0].directory.clean

    run(scenario())


def test_a_partition_whose_files_were_taken_away_is_out_of_service_and_no_other() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = await started(universe, durability="fsync")
        async with Admin(AT, ports=universe.ports) as admin:
            await admin.create_topic("orders", partitions=2)
        append(node)
        append(node, index=1)
        await asyncio.sleep(1)
        universe.disk.remove_folder("/data/orders-0")
        partition = node._replicas.get("orders", 0)
        assert partition is not None
        partition.log.segments.unsynced_names = True
        append(node)
        await asyncio.sleep(1)
        with pytest.raises(Refusal, match="takes no writes"):
            append(node)
        append(node, index=1)
        assert node.not_ready() is None
        await node.stop()
        assert not (await started(universe))._homes[0].directory.clean

    run(scenario())
