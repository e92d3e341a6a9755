"""Compaction in a whole node on virtual time: when it happens, what clients see, and what stands in its way."""

import asyncio
import errno
from collections.abc import Callable, Coroutine

import pytest

from riverlog import Admin, Consumer, Producer
from riverlog.client.errors import KafkaError
from riverlog.log.checkpoint import decode_offsets, read_file
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.node import Node
from riverlog.partitions.partition import Partition
from tests.support.virtual_time import run
from tests.support.world import Universe

AT = "node:9092"
ORDERS = TopicPartition("orders", 0)
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "1024", "min.cleanable.dirty.ratio": "0.1"}


def in_a_universe(scenario: Callable[[Universe], Coroutine[None, None, None]]) -> Callable[[], None]:
    def test() -> None:
        run(scenario(Universe()))

    return test


async def a_node_with_orders(universe: Universe, rounds: int = 10, **config: str) -> Node:
    """Start a node with a compacted topic and write each of three keys many times."""
    node = universe.node()
    await node.start()
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=1, configs=COMPACTED | config)
    await write(universe, rounds)
    return node


async def write(universe: Universe, rounds: int) -> None:
    async with Producer(AT, ports=universe.ports) as producer:
        for number in range(rounds):
            for key in (b"a", b"b", b"c"):
                await producer.send("orders", key=key, value=b"%d" % number * 50)


async def read_all(universe: Universe) -> list[tuple[int, bytes | None, bytes | None]]:
    async with Consumer(AT, ports=universe.ports) as consumer:
        consumer.assign([ORDERS])
        await consumer.seek_to_beginning(ORDERS)
        found = []
        while records := await consumer.poll(timeout_ms=1_000):
            found += [(record.offset, record.key, record.value) for record in records]
        return found


def the_partition(node: Node) -> Partition:
    partition = node.parts.replicas.get("orders", 0)
    assert partition is not None
    return partition


async def until_cleaned(node: Node) -> None:
    """Wait for the flush of closed segments and the next round of the cleaner."""
    await asyncio.sleep(20)
    assert node.parts.registry.directories[0].logs.cleaned_offset(ORDERS) > 0


@in_a_universe
async def test_old_values_go_and_clients_do_not_notice(universe: Universe) -> None:
    node = await a_node_with_orders(universe)
    before = await read_all(universe)
    await until_cleaned(node)
    log = the_partition(node).log
    cleaned = node.parts.registry.directories[0].logs.cleaned_offset(ORDERS)
    after = await read_all(universe)
    assert len(after) < len(before) / 2
    assert set(after) < set(before)
    assert {key: value for _, key, value in after} == {key: value for _, key, value in before}
    assert len({key for offset, key, _ in after if offset < cleaned}) == sum(offset < cleaned for offset, *_ in after)
    assert [facts.size for facts in log.segment_facts() if facts.size < 200], "what is left of a segment is small"
    await node.stop()
    node = universe.node()
    await node.start()
    assert await read_all(universe) == after
    path = "/data/cleaner-offset-checkpoint"
    assert decode_offsets(read_file(universe.disk, path) or b"", path) == {ORDERS: cleaned}
    await write(universe, 5)
    await asyncio.sleep(20)
    assert node.parts.registry.directories[0].logs.cleaned_offset(ORDERS) > cleaned
    assert len(the_partition(node).log.segments) <= 4, "and put together with its neighbours"
    assert {key: value for _, key, value in await read_all(universe)} == dict.fromkeys((b"a", b"b", b"c"), b"4" * 50)
    await node.stop()


@in_a_universe
async def test_deleted_keys_are_gone_after_their_time(universe: Universe) -> None:
    node = await a_node_with_orders(universe, **{"delete.retention.ms": "60000"})
    async with Producer(AT, ports=universe.ports) as producer:
        await producer.send("orders", key=b"a", value=None)
    await write_other_keys(universe)
    await until_cleaned(node)
    assert (30, b"a", None) in await read_all(universe)
    await asyncio.sleep(60)
    await write_other_keys(universe)
    await asyncio.sleep(20)
    assert not any(key == b"a" for _, key, _ in await read_all(universe))
    await node.stop()


async def write_other_keys(universe: Universe) -> None:
    async with Producer(AT, ports=universe.ports) as producer:
        for _ in range(20):
            await producer.send("orders", key=b"z", value=b"z" * 200)


@in_a_universe
async def test_records_without_a_key_are_refused(universe: Universe) -> None:
    node = await a_node_with_orders(universe, rounds=1)
    async with Producer(AT, ports=universe.ports) as producer:
        with pytest.raises(KafkaError, match="without a key") as refused:
            await producer.send("orders", b"nobody's")
        assert refused.value.code is ErrorCode.INVALID_RECORD
        async with Admin(AT, ports=universe.ports) as admin:
            await admin.create_topic("plain", partitions=1)
        await producer.send("plain", b"nobody's")
    await node.stop()


@in_a_universe
async def test_without_the_cleaner_nothing_is_compacted(universe: Universe) -> None:
    node = universe.node(log_cleaner_enable="false")
    await node.start()
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=1, configs=COMPACTED)
    await write(universe, 10)
    await asyncio.sleep(100)
    assert len(await read_all(universe)) == 30
    await node.stop()


@in_a_universe
async def test_a_damaged_log_is_left_alone(universe: Universe) -> None:
    node = await a_node_with_orders(universe)
    universe.disk.damage("/data/orders-0/00000000000000000000.log", 100)
    await asyncio.sleep(100)
    assert node.parts.registry.directories[0].logs.cleaned_offset(ORDERS) == 0
    assert not any(name.endswith(".cleaned") for name in universe.disk.list("/data/orders-0"))
    assert not node.parts.registry.directories[0].health.offline
    await node.stop()


@pytest.mark.parametrize("seconds", [number * 0.0013 for number in range(16)])
async def test_a_topic_deleted_in_the_middle_of_it_is_gone(seconds: float) -> None:
    universe = Universe()
    node = await a_node_with_orders(universe)
    await asyncio.sleep(2)  # the closed segments are flushed
    compacting = asyncio.create_task(node._cleaner(node.parts).clean_dirtiest())
    await asyncio.sleep(seconds)
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.delete_topics(["orders"])
    await compacting
    await asyncio.sleep(20)
    assert not node.parts.registry.directories[0].health.offline
    assert not any(name.startswith("orders") for name in universe.disk.list("/data"))
    await node.stop()


@pytest.mark.parametrize("seconds", [number * 0.0013 for number in range(16)])
async def test_a_node_stopped_in_the_middle_of_it_has_lost_nothing(seconds: float) -> None:
    universe = Universe()
    node = await a_node_with_orders(universe)
    before = await read_all(universe)
    await asyncio.sleep(2)
    compacting = asyncio.create_task(node._cleaner(node.parts).clean_dirtiest())
    await asyncio.sleep(seconds)
    compacting.cancel()
    await asyncio.wait([compacting])
    await node.stop()
    node = universe.node()
    await node.start()
    after = await read_all(universe)
    assert set(after) <= set(before)
    assert {key: value for _, key, value in after} == {key: value for _, key, value in before}
    await node.stop()


@in_a_universe
async def test_a_full_disk_is_tried_again_later(universe: Universe) -> None:
    node = await a_node_with_orders(universe)
    await asyncio.sleep(2)
    universe.disk.fail(0, errno.ENOSPC, on=("write",))
    assert not await node._cleaner(node.parts).clean_dirtiest()
    assert not node.parts.registry.directories[0].health.offline
    assert not any(name.endswith(".cleaned") for name in universe.disk.list("/data/orders-0"))
    await until_cleaned(node)
    await node.stop()


@in_a_universe
async def test_a_swap_that_fails_takes_the_directory_offline(universe: Universe) -> None:
    node = await a_node_with_orders(universe)
    await asyncio.sleep(2)
    universe.disk.fail(0, errno.EIO, on=("sync_folder",))
    await node._cleaner(node.parts).clean_dirtiest()
    assert node.parts.registry.directories[0].health.offline
    assert node.parts.registry.directories[0].logs.cleaned_offset(ORDERS) == 0
    await node.stop()
    universe.disk.heal()
    node = universe.node()
    await node.start()
    assert {key: value for _, key, value in await read_all(universe)} == dict.fromkeys((b"a", b"b", b"c"), b"9" * 50)
    await node.stop()
