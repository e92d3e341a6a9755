"""What the simulation found once, as small as it could be made."""

import asyncio
import errno
import gc
from collections.abc import Callable
from typing import Any

import pytest

from riverlog import Admin, Consumer, Producer
from riverlog.broker.handlers.delete_records import _written_down
from riverlog.client.errors import KafkaError
from riverlog.log.checkpoint import PARTITION_FILE, read_file
from riverlog.log.directory import CLEAN_FILE
from riverlog.log.log import Log
from riverlog.log.segment_deletion import enforce_retention
from riverlog.log.sync import SyncPlan
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.records import FeatureLevelRecord
from riverlog.metadata.snapshot import snapshot_records
from riverlog.model.ids import LeaderEpoch, Offset, TopicPartition
from riverlog.model.settings import Durability, TopicConfig
from riverlog.partitions import recovery
from riverlog.partitions.limits import RECOVERY_WAIT_SECONDS_MAX
from riverlog.records.batch import read_header
from tests.simulation.machine import ADDRESS, Machine
from tests.support.batches import batch_of, records_of
from tests.support.disk import MemoryDisk
from tests.support.metadata_log import only_voter_log
from tests.support.raft import voter
from tests.support.virtual_time import VirtualClock, run
from tests.support.world import Universe

ORDERS = TopicPartition("orders", 0)


async def read_all(machine: Machine) -> list[bytes | None]:
    async with Consumer(ADDRESS, ports=machine.ports) as consumer:
        consumer.assign([ORDERS])
        await consumer.seek_to_beginning(ORDERS)
        return [record.value for record in await consumer.poll(timeout_ms=1_000)]


def test_what_a_killed_process_left_unsynced_is_not_shown_before_it_is_durable() -> None:
    async def scenario() -> None:
        machine = Machine(0, {"durability": "fsync"}, pytest.fail)
        await machine.serving()
        producer = await Producer(ADDRESS, ports=machine.ports, acks=1).start()
        await producer.send("orders", b"first")
        await asyncio.sleep(1)
        machine.workers.seconds_max = 60.0  # no flush comes to its end
        await producer.send("orders", b"in the page cache")
        machine.kill()
        await asyncio.sleep(0.001)
        await machine.serving()
        shown = await read_all(machine)
        machine.lose_power()
        await asyncio.sleep(0.001)
        await machine.serving()
        assert shown == await read_all(machine) == [b"first", b"in the page cache"]
        await producer.close()
        await machine.shut_down()

    run(scenario())


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_upkeep_that_meets_a_failing_disk_does_not_end_the_node(error: int) -> None:
    async def scenario() -> None:
        universe = Universe()
        node = universe.node(log_retention_check_interval_ms="1000", log_retention_ms="500")
        await node.start()
        async with Producer(ADDRESS, ports=universe.ports) as producer:
            await producer.send("orders", b"old")
        universe.disk.fail(0, error, on=("create", "write"), lasting=True)
        await asyncio.sleep(5)  # retention begins another segment, and cannot
        assert node.failure is None
        universe.disk.heal()
        await node.stop()

    run(scenario())


def test_a_disk_that_fails_while_the_node_starts_does_not_end_it() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = universe.node()
        await node.start()
        async with Producer(ADDRESS, ports=universe.ports) as producer:
            await producer.send("orders", b"one")
        await universe.lose_power()
        node = universe.node()
        await node.start()
        universe.disk.fail(0, errno.EIO, lasting=True)
        await asyncio.sleep(0.1)  # the upkeep opens the partition, and cannot
        assert node.failure is None
        await node.stop()

    run(scenario())


def test_a_full_disk_does_not_keep_a_node_from_stopping() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = universe.node()
        await node.start()
        async with Admin(ADDRESS, ports=universe.ports) as admin:
            await admin.create_topic("orders")
        universe.disk.fail(0, errno.ENOSPC, on=("write", "create"), lasting=True)
        await node.stop()
        universe.disk.heal()
        node = universe.node()
        await node.start()
        async with Admin(ADDRESS, ports=universe.ports) as admin:
            assert [topic.name for topic in await admin.list_topics()] == ["orders"]
        await node.stop()

    run(scenario())


def test_a_segment_that_could_not_be_begun_leaves_nothing_behind() -> None:
    config = TopicConfig(segment_bytes=1_024)
    disk = MemoryDisk()
    log = Log.open(disk, "/orders-0", config, recovery_point=Offset(0), clean=False, now_ms=0)

    def append(value: bytes) -> None:
        batch = batch_of([value])
        log.append(batch, read_header(batch), leader_epoch=LeaderEpoch(0), now_ms=0)

    append(b"a" * 700)
    disk.fail(0, errno.ENOSPC, on=("write",))
    with pytest.raises(OSError, match="No space"):
        append(b"b" * 700)  # another segment is begun, but the indexes of the first cannot be written
    append(b"c" * 10)  # fits into the first segment
    append(b"d" * 700)
    log.flush()
    disk.crash()
    log = Log.open(disk, "/orders-0", config, recovery_point=Offset(0), clean=False, now_ms=0)
    assert log.log_end_offset == 3
    found = [log.read(Offset(offset), bytes_max=1, upto=Offset(3)) for offset in range(3)]
    assert [len(records_of(read.records)[0].value or b"") for read in found] == [700, 10, 700]


def test_a_log_whose_records_were_all_lost_below_its_start_keeps_what_comes_then() -> None:
    config = TopicConfig(durability=Durability.OS)
    disk = MemoryDisk()
    disk.make_folder("/orders-0")
    for name in ("00000000000000000000.log", "00000000000000000000.snapshot"):
        disk.open(f"/orders-0/{name}", create=True)  # its records were not synced, where it starts was

    def opened() -> Log:
        return Log.open(
            disk,
            "/orders-0",
            config,
            recovery_point=Offset(0),
            clean=False,
            now_ms=0,
            log_start_offset=Offset(16),
        )

    log = opened()
    batch = batch_of([b"new"])
    log.append(batch, read_header(batch), leader_epoch=LeaderEpoch(0), now_ms=0)
    disk.kill()
    log = opened()
    assert (log.log_start_offset, log.log_end_offset) == (16, 17)


def test_a_topic_that_is_deleted_twice_in_a_hurry_is_removed_once() -> None:
    async def scenario() -> None:
        unhandled: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unhandled.append(context))
        machine = Machine(0, {"durability": "fsync"}, pytest.fail)
        await machine.serving()
        async with (
            Admin(ADDRESS, ports=machine.ports) as admin,
            Producer(ADDRESS, ports=machine.ports, acks=1) as producer,
        ):
            await producer.send("orders", b"first")
            await asyncio.sleep(1)
            run_now, go_on = machine.workers.run, asyncio.Event()

            async def run_later(work: Callable[[], Any]) -> Any:
                await go_on.wait()
                return await run_now(work)

            def is_flush_of_orders(work: Any) -> bool:
                plan = getattr(work, "__self__", None)
                return isinstance(plan, SyncPlan) and any("orders-0" in file.path for file in plan.files)

            machine.workers.run = lambda work: (run_later if is_flush_of_orders(work) else run_now)(work)  # type: ignore[method-assign]
            await producer.send("orders", b"being flushed")
            for _ in range(2):
                await admin.delete_topics("orders")
                await admin.create_topic("orders", partitions=1)
            go_on.set()
            sent = await producer.send("orders", b"last")
            assert sent.offset == 0
        gc.collect()  # tells of tasks that ended with an exception
        assert unhandled == []
        await machine.shut_down()

    run(scenario())


def test_what_a_failed_write_left_does_not_cut_the_log_at_the_next_start() -> None:
    config = TopicConfig(segment_bytes=1_024)
    disk = MemoryDisk(1)
    log = Log.open(disk, "/orders-0", config, recovery_point=Offset(0), clean=False, now_ms=0)

    def append(value: bytes) -> None:
        batch = batch_of([value])
        log.append(batch, read_header(batch), leader_epoch=LeaderEpoch(0), now_ms=0)

    append(b"a" * 300)
    disk.fail(0, errno.ENOSPC, on=("write",))
    with pytest.raises(OSError, match="No space"):
        append(b"b" * 300)  # some of its bytes are in the file
    append(b"c" * 900)  # begins another segment
    log.flush()
    disk.crash()
    log = Log.open(disk, "/orders-0", config, recovery_point=Offset(0), clean=False, now_ms=0)
    assert log.log_end_offset == 2


def test_a_snapshot_of_the_metadata_waits_for_a_write_under_way() -> None:
    async def scenario() -> None:
        disk = MemoryDisk()
        waiting: list[asyncio.Future[None]] = []

        class HeldWorkers:
            async def run(self, work: Callable[[], Any]) -> Any:
                waiting.append(asyncio.get_running_loop().create_future())
                await waiting[-1]
                return work()

        def segments() -> int:
            return sum(name.endswith(".log") for name in disk.list("/data/metadata-0"))

        log = only_voter_log(disk, "/data/metadata-0", VirtualClock(), HeldWorkers(), voter(1))
        log.quorum.start(log)
        log.lead()
        records = snapshot_records(MetadataImage())
        log.begin_snapshot(MetadataImage(), log.end_offset)
        await asyncio.sleep(0)
        committed = log.append([*records, FeatureLevelRecord("metadata.version", 1)])
        await asyncio.sleep(0)
        snapshot_written, write_synced = waiting
        snapshot_written.set_result(None)
        await asyncio.sleep(1)
        assert segments() == 1  # otherwise a torn write would not be in the last segment
        write_synced.set_result(None)
        await committed
        await asyncio.sleep(1)
        assert segments() == 2

    run(scenario())


def test_the_id_of_a_partition_is_durable_before_what_a_killed_process_left_counts() -> None:
    disk = MemoryDisk()
    disk.make_folder("/orders-0")
    disk.sync_folder("/")
    for name, content in ("00000000000000000000.log", batch_of([b"kept"])), (PARTITION_FILE, b"some id"):
        disk.open(f"/orders-0/{name}", create=True).write(0, [content])
    disk.kill()
    Log.open(disk, "/orders-0", TopicConfig(), recovery_point=Offset(0), clean=False, now_ms=0)
    disk.crash()
    assert read_file(disk, f"/orders-0/{PARTITION_FILE}") == b"some id"


def test_records_of_a_deleted_topic_do_not_come_back_in_a_new_one_of_that_name() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = universe.node()
        await node.start()
        async with Admin(ADDRESS, ports=universe.ports) as admin:
            await admin.create_topic("orders", partitions=1)
        await node.stop()
        universe.disk.crash()
        # The topic's predecessor was deleted before it was flushed: its records are there, the id of its topic is not.
        universe.disk.make_folder("/data/orders-0")
        universe.disk.open("/data/orders-0/00000000000000000000.log", create=True).write(0, [batch_of([b"old"])])
        node = universe.node()
        await node.start()
        async with Producer(ADDRESS, ports=universe.ports) as producer:
            sent = await producer.send("orders", b"new")
        assert sent.offset == 0
        await node.stop()

    run(scenario())


@pytest.mark.parametrize("seed", range(20))
def test_deleted_segments_leave_no_gap_behind_which_the_log_is_cut(seed: int) -> None:
    async def scenario() -> None:
        universe = Universe(seed)
        node = universe.node(durability="fsync", log_segment_bytes="1024", log_retention_check_interval_ms="1000")
        await node.start()
        async with Producer(ADDRESS, ports=universe.ports) as producer, Admin(ADDRESS, ports=universe.ports) as admin:
            for number in range(10):
                await producer.send("orders", b"%d" % number * 600)
            await admin.alter_configs({"retention.bytes": "3000"}, topic="orders")
            partition = node.parts.replicas.get("orders", 0)
            assert partition is not None
            while len(partition.log.segments) > 7:  # noqa: ASYNC110 - in the middle of it nobody tells
                await asyncio.sleep(0.001)
        await universe.lose_power()
        node = universe.node(durability="fsync")
        await node.start()
        await node.parts.replicas.wait_recovered(ORDERS)
        partition = node.parts.replicas.get("orders", 0)
        assert partition is not None
        assert partition.high_watermark == 10
        assert [segment.base_offset for segment in partition.log.segment_facts()] in (
            list(range(start, 10)) for start in range(10)
        )
        await node.stop()

    run(scenario())


@pytest.mark.parametrize("seed", range(20))
def test_a_log_does_not_begin_with_its_second_segment(seed: int) -> None:
    config = TopicConfig(segment_bytes=1_024)
    disk = MemoryDisk(seed)
    disk.make_folder("/orders-0")
    disk.sync_folder("/")
    log = Log.open(disk, "/orders-0", config, recovery_point=Offset(0), clean=False, now_ms=0)
    for value in (b"a" * 700, b"b" * 700, b"c" * 700):
        batch = batch_of([value])
        log.append(batch, read_header(batch), leader_epoch=LeaderEpoch(0), now_ms=0)
    disk.crash()
    log = Log.open(disk, "/orders-0", config, recovery_point=Offset(0), clean=False, now_ms=0)
    assert log.log_start_offset == 0


def test_a_start_that_failed_half_way_is_no_stop_in_good_order() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = universe.node()
        await node.start()
        async with Producer(ADDRESS, ports=universe.ports) as producer:
            await producer.send("orders", b"one")
        await universe.lose_power()

        def fail_to_look(kind: str, path: str) -> None:
            if kind == "open" and path.endswith("orders-0/partition.metadata"):
                raise OSError(errno.EMFILE, "Too many open files")

        universe.disk.before_step = fail_to_look
        node = universe.node()
        with pytest.raises(OSError, match="Too many open files"):
            await node.start()
        assert not universe.disk.exists(f"/data/{CLEAN_FILE}")

    run(scenario())


def test_a_deleted_topic_whose_folder_cannot_be_renamed_does_not_come_back_under_its_name() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = universe.node(log_segment_delete_delay_ms="0")
        await node.start()
        async with Producer(ADDRESS, ports=universe.ports) as producer, Admin(ADDRESS, ports=universe.ports) as admin:
            await producer.send("orders", b"of the first")
            universe.disk.fail(0, errno.ENOSPC, on=("rename",))
            await admin.delete_topics("orders")
            await admin.create_topic("orders", partitions=1)
            sent = await producer.send("orders", b"of the second")
            assert sent.offset == 0
        await node.stop()

    run(scenario())


def test_a_request_that_waited_for_a_log_when_the_power_failed_is_never_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "RECOVERY_STEP_LOGS_MAX", 1)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, _context: None)  # Crashed, of whatever is left of the node
        machine = Machine(0, {"durability": "fsync", "num.recovery.threads.per.data.dir": "1"}, pytest.fail)
        await machine.serving()
        async with Producer(ADDRESS, ports=machine.ports) as producer:
            for topic in ("orders", "returns"):
                await producer.send(topic, b"one")
        machine.lose_power()
        await asyncio.sleep(0.001)
        await machine.serving()
        machine.workers.seconds_max = 60.0  # nobody is at work on one of the logs as long as it takes for the other
        loop.call_later(1, machine.lose_power)
        async with asyncio.TaskGroup() as tasks:
            for topic in ("orders", "returns"):
                tasks.create_task(delete_first_record(machine, TopicPartition(topic, 0)))
        await asyncio.sleep(2 * RECOVERY_WAIT_SECONDS_MAX)
        assert not [task for task in asyncio.all_tasks() if task.get_coro().__name__ == _written_down.__name__]
        await machine.shut_down()

    run(scenario())


async def delete_first_record(machine: Machine, partition: TopicPartition) -> None:
    async with Admin(ADDRESS, ports=machine.ports) as admin:
        await admin.delete_records({partition: 1})


def test_a_node_whose_metadata_failed_is_not_stopped_in_good_order() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = universe.node()
        await node.start()
        universe.disk.fail(0, errno.EIO, on=("sync",))
        async with Admin(ADDRESS, ports=universe.ports, timeout_ms=1_000) as admin:
            with pytest.raises(KafkaError):
                await admin.create_topic("orders", partitions=1)
        assert isinstance(await node.run(), OSError)
        await node.stop()
        assert not universe.disk.exists(f"/data/{CLEAN_FILE}")

    run(scenario())


def test_a_segment_that_could_not_be_taken_back_is_used() -> None:
    config = TopicConfig(segment_bytes=1_024)
    disk = MemoryDisk()
    log = Log.open(disk, "/orders-0", config, recovery_point=Offset(0), clean=False, now_ms=0)

    def append(value: bytes) -> None:
        batch = batch_of([value])
        log.append(batch, read_header(batch), leader_epoch=LeaderEpoch(0), now_ms=0)

    append(b"a" * 700)
    disk.fail(1, errno.ENOSPC, on=("create", "remove"), lasting=True)
    append(b"b" * 700)  # another segment is begun; the indexes of the first cannot be written, nor its file removed
    disk.heal()
    append(b"c" * 10)
    log.flush()
    disk.crash()
    log = Log.open(disk, "/orders-0", config, recovery_point=Offset(0), clean=False, now_ms=0)
    assert log.log_end_offset == 3


def test_a_segment_that_could_not_be_deleted_leaves_no_gap_behind_it() -> None:
    config = TopicConfig(segment_bytes=1_024, retention_ms=1)
    disk = MemoryDisk()
    log = Log.open(disk, "/orders-0", config, recovery_point=Offset(0), clean=False, now_ms=0)
    for value in (b"a" * 700, b"b" * 700, b"c" * 700):
        batch = batch_of([value])
        log.append(batch, read_header(batch), leader_epoch=LeaderEpoch(0), now_ms=0)
    log.flush()
    disk.fail(0, errno.ENOSPC, on=("rename",))
    with pytest.raises(OSError, match="No space"):
        enforce_retention(log, 1 << 41, upto=Offset(2), segments_max=1)
    enforce_retention(log, 1 << 41, upto=Offset(2), segments_max=1)
    assert [segment.base_offset for segment in log.segment_facts()] == [1, 2]
    assert "00000000000000000000.log" not in disk.list("/orders-0")


def test_a_segment_whose_end_is_damaged_stays_until_the_log_starts_behind_that() -> None:
    config = TopicConfig(segment_bytes=1_024)
    disk = MemoryDisk()
    log = Log.open(disk, "/orders-0", config, recovery_point=Offset(0), clean=False, now_ms=0)
    for value in (b"a" * 400, b"b" * 400, b"c" * 400):
        batch = batch_of([value])
        log.append(batch, read_header(batch), leader_epoch=LeaderEpoch(0), now_ms=0)
    log.close()
    path = "/orders-0/00000000000000000000.log"
    file = disk.open(path)
    file.truncate(file.size() - 10)
    log = Log.open(disk, "/orders-0", config, recovery_point=Offset(3), clean=False, now_ms=0)
    log.advance_log_start(Offset(1))
    assert enforce_retention(log, 0, upto=Offset(3)) == []
    log.advance_log_start(Offset(2))
    assert [deleted.base_offset for deleted in enforce_retention(log, 0, upto=Offset(3))] == [0]
