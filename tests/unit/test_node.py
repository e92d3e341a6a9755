"""A whole node on virtual time: it serves, stops in good order, survives crashes, and says what is wrong."""

import asyncio
import errno

import pytest

from riverlog import Admin, Consumer, Producer
from riverlog.client.errors import KafkaError
from riverlog.log.identity import DirectoryRefused
from riverlog.log.log import Log
from riverlog.model.errors import InvariantBroken
from riverlog.model.ids import TopicPartition
from tests.support.virtual_time import run
from tests.support.world import Universe

AT = "node:9092"
ORDERS = TopicPartition("orders", 0)


async def write(universe: Universe, *values: bytes, **settings: object) -> list[int]:
    async with Producer(AT, ports=universe.ports, **settings) as producer:  # type: ignore[arg-type]
        return [(await producer.send("orders", value)).offset for value in values]


async def read_all(universe: Universe) -> list[bytes | None]:
    async with Consumer(AT, ports=universe.ports) as consumer:
        consumer.assign([ORDERS])
        await consumer.seek_to_beginning(ORDERS)
        values: list[bytes | None] = []
        while records := await consumer.poll(timeout_ms=1_000):
            values += [record.value for record in records]
        return values


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_what_was_written_is_read_before_and_after_a_restart(durability: str) -> None:
    async def scenario() -> None:
        universe = Universe()
        node = universe.node(durability=durability)
        await node.start()
        assert await write(universe, b"a", b"b", b"c") == [0, 1, 2]
        assert await read_all(universe) == [b"a", b"b", b"c"]
        await node.stop()
        node = universe.node()
        await node.start()
        assert await read_all(universe) == [b"a", b"b", b"c"]
        assert await write(universe, b"d") == [3]
        await node.stop()

    run(scenario())


@pytest.mark.parametrize("seed", range(20))
def test_what_was_acknowledged_survives_the_loss_of_power(seed: int) -> None:
    async def scenario() -> None:
        universe = Universe(seed)
        written: list[bytes] = []
        for life in range(4):
            node = universe.node(durability="fsync", log_segment_bytes="2048")
            await node.start()
            values = [b"%d-%d" % (life, number) * universe.random.randrange(1, 40) for number in range(20)]
            await write(universe, *values)
            written += values
            await universe.lose_power()
        node = universe.node()
        await node.start()
        assert await read_all(universe) == written
        await node.stop()

    run(scenario())


def test_a_waiting_fetch_is_answered_when_records_come() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = universe.node()
        await node.start()
        await write(universe, b"first")
        async with Consumer(AT, ports=universe.ports) as consumer:
            consumer.assign([ORDERS])
            await consumer.seek_to_end(ORDERS)
            assert await consumer.poll(timeout_ms=100) == []
            await write(universe, b"second")
            (record,) = await consumer.poll(timeout_ms=10_000)
            assert record.value == b"second"
        await node.stop()

    run(scenario())


def test_a_second_node_on_the_same_folder_is_refused() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = universe.node()
        await node.start()
        with pytest.raises(DirectoryRefused, match="in use by another node"):
            await universe.node(listeners="PLAINTEXT://node:9093").start()
        await node.stop()

    run(scenario())


def test_a_node_whose_only_disk_is_not_mounted_does_not_begin_a_new_cluster() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = universe.node()
        await node.start()
        cluster_id = node.cluster_id
        await node.stop()
        node = universe.node(cluster_id=cluster_id)
        await node.start()
        await node.stop()
        with pytest.raises(DirectoryRefused, match="belongs to the cluster"):
            await universe.node(cluster_id="another").start()
        universe.disk.rename("/data", "/unmounted")
        with pytest.raises(DirectoryRefused, match="/data is empty"):
            await universe.node(cluster_id=cluster_id).start()
        assert not universe.disk.exists("/data/meta.properties")

    run(scenario())


def test_a_start_that_fails_gives_everything_back() -> None:
    async def scenario() -> None:
        universe = Universe()
        busy = universe.network.listen("node", 9092, lambda _socket: None)
        with pytest.raises(OSError, match="in use"):
            await universe.node().start()
        busy.close()
        node = universe.node()
        await node.start()
        await node.stop()

    run(scenario())


def test_a_full_disk_refuses_writes_and_recovers_by_itself() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = universe.node()
        await node.start()
        await write(universe, b"a")
        universe.disk.fail(0, errno.ENOSPC, on=("write",), lasting=True)
        with pytest.raises(KafkaError) as refused:
            await write(universe, b"b", delivery_timeout_ms=500, request_timeout_ms=400, acks=1)
        assert "is full" in str(refused.value)
        assert await read_all(universe) == [b"a"]
        universe.disk.heal()
        assert await write(universe, b"c") == [1]
        await node.stop()

    run(scenario())


def test_a_failed_flush_takes_the_directory_offline_for_good() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = universe.node(durability="fsync")
        await node.start()
        await write(universe, b"a")
        universe.disk.fail(0, errno.EIO, on=("sync",))
        with pytest.raises(KafkaError):
            await write(universe, b"b", delivery_timeout_ms=500, request_timeout_ms=400)
        universe.disk.heal()
        with pytest.raises(KafkaError) as refused:
            await write(universe, b"c", delivery_timeout_ms=500, request_timeout_ms=400)
        assert "is offline" in str(refused.value)
        assert "offline" in (node.not_ready() or "")
        await node.stop()

    run(scenario())


def test_a_deleted_topic_is_gone_and_its_name_free() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = universe.node(auto_create_topics_enable="false")
        await node.start()
        async with Admin(AT, ports=universe.ports) as admin:
            await admin.create_topic("orders", partitions=1)
            await write(universe, b"old")
            await admin.delete_topics(["orders"])
            assert await admin.list_topics() == []
            await admin.create_topic("orders", partitions=1)
        assert await write(universe, b"new") == [0]
        assert await read_all(universe) == [b"new"]
        await node.stop()

    run(scenario())


@pytest.mark.parametrize(
    "part",
    [
        "upkeep.cleaner.Cleaner",
        "upkeep.scrubber.Scrubber",
        "upkeep.upkeep.Upkeep",
        "coordination.groups.GroupCoordinator",
    ],
)
def test_a_mistake_in_background_work_is_told_and_the_work_goes_on(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[str] = []

    async def fails(self: object) -> None:
        rounds.append(part)
        raise ZeroDivisionError

    monkeypatch.setattr(f"riverlog.{part}.run", fails)

    async def scenario() -> None:
        universe = Universe()
        node = universe.node()
        await node.start()
        await asyncio.sleep(10)
        assert len(rounds) > 1
        assert node.stats.contained == len(rounds)
        assert await write(universe, b"a") == [0]
        assert node.failure is None
        await node.stop()

    run(scenario())


def test_a_log_that_is_not_what_it_must_be_ends_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        universe = Universe()
        node = universe.node()
        await node.start()
        assert await write(universe, b"a") == [0]

        def fails(log: Log, *_: object, **__: object) -> None:
            raise AssertionError("the log ends elsewhere")

        monkeypatch.setattr(Log, "write", fails)
        async with Producer(AT, ports=universe.ports, request_timeout_ms=1_000, delivery_timeout_ms=2_000) as producer:
            with pytest.raises(KafkaError):
                await producer.send("orders", b"b")
        assert isinstance(await node.run(), InvariantBroken)
        monkeypatch.undo()
        await node.stop()

    run(scenario())
