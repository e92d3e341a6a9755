"""The scrubber in a whole node on virtual time: what it finds, who hears of it, and what clients see."""

import asyncio
import logging
from collections.abc import Callable, Coroutine

import pytest

from riverlog import Admin, Consumer, Producer
from riverlog.client.errors import CorruptRecords
from riverlog.log.scrubbing import ScrubbedSegment
from riverlog.log.segments.flaws import Flaw
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset, TopicPartition
from riverlog.node import Node
from riverlog.observe.metrics import Metric, Scrape, scrape
from tests.support.virtual_time import run
from tests.support.world import Universe

AT = "node:9092"
ORDERS = TopicPartition("orders", 0)
RECORDS = 30
SECOND = "/data/orders-0/00000000000000000006.log"


def in_a_universe(scenario: Callable[[Universe], Coroutine[None, None, None]]) -> Callable[[], None]:
    def test() -> None:
        run(scenario(Universe()))

    return test


async def a_node_with_orders(universe: Universe, **settings: str) -> Node:
    node = universe.node(**settings)
    await node.start()
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=1, configs={"segment.bytes": "1024"})
    async with Producer(AT, ports=universe.ports) as producer:
        for number in range(RECORDS):
            await producer.send("orders", value=b"%02d" % number * 40)
    await asyncio.sleep(2)  # closed segments are flushed
    return node


async def read_from(universe: Universe, offset: int) -> list[int]:
    """Read on until the end or an error."""
    found: list[int] = []
    async with Consumer(AT, ports=universe.ports) as consumer:
        consumer.assign([ORDERS])
        await consumer.seek(ORDERS, offset)
        while records := await consumer.poll(timeout_ms=1_000):
            found += [record.offset for record in records]
    return found


async def numbers(node: Node) -> tuple[int, float, float]:
    """Return the damaged segments, the bytes scrubbed, and when that was done."""
    found: Scrape = await scrape(node.parts.metrics, version="1")
    values = {reading.metric: reading.value for reading in found.readings}
    scrubbed, completed = values[Metric.SCRUBBED_BYTES], values[Metric.SCRUB_COMPLETED]
    assert isinstance(scrubbed, int | float)
    assert isinstance(completed, int | float)
    return sum(partition.damaged_segments for partition in found.partitions), scrubbed, completed


@in_a_universe
async def test_rot_is_found_before_anybody_reads_it(universe: Universe) -> None:
    node = await a_node_with_orders(universe)
    assert len(await read_from(universe, 0)) == RECORDS  # all is verified and remembered as good
    assert SECOND.rpartition("/")[2] in universe.disk.list("/data/orders-0")
    universe.disk.damage(SECOND, 100)
    await asyncio.sleep(700)
    damaged, scrubbed, completed = await numbers(node)
    assert damaged == 1
    assert scrubbed > 3_000
    assert completed > 0
    assert universe.disk.exists("/data/orders-0/quarantine")
    with pytest.raises(CorruptRecords, match="offset 6 of orders-0") as refused:
        await read_from(universe, 4)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert await read_from(universe, 7) == list(range(7, RECORDS))
    async with Producer(AT, ports=universe.ports) as producer:
        assert (await producer.send("orders", value=b"more")).offset == RECORDS
    await node.stop()
    node = universe.node()
    await node.start()
    with pytest.raises(CorruptRecords):
        await read_from(universe, 6)
    assert (await numbers(node))[0] == 1
    assert node.not_ready() is None
    await node.stop()


def test_each_damage_is_one_line_that_says_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        universe = Universe()
        node = await a_node_with_orders(universe)
        universe.disk.damage(SECOND, 100)
        await node._scrubber(node.parts).scrub_all()
        await node._scrubber(node.parts).scrub_all()
        await asyncio.sleep(3)
        await node.stop()

    with caplog.at_level(logging.ERROR, logger="riverlog"):
        run(scenario())
    (line,) = [record.__dict__["fields"] for record in caplog.records if record.getMessage() == "damage found"]
    assert line["partition"] == "orders-0"
    assert line["file"] == SECOND
    assert (line["first_offset"], line["last_offset"]) == (6, 6)
    assert "checksum" in line["detail"]
    assert "DeleteRecords" in line["advice"]


@in_a_universe
async def test_it_can_be_switched_off(universe: Universe) -> None:
    node = await a_node_with_orders(universe, log_scrub_interval_ms="-1")
    universe.disk.damage(SECOND, 100)
    await asyncio.sleep(10_000)
    assert await numbers(node) == (0, 0, 0)
    await node.stop()


@in_a_universe
async def test_a_topic_deleted_meanwhile_is_no_trouble(universe: Universe) -> None:
    node = await a_node_with_orders(universe)
    universe.disk.damage(SECOND, 100)
    scrubbing = asyncio.create_task(node._scrubber(node.parts).scrub_all())
    await asyncio.sleep(0.003)
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.delete_topics(["orders"])
    await scrubbing
    await asyncio.sleep(20)
    assert not node.parts.registry.directories[0].health.offline
    await node.stop()


def test_what_is_found_of_a_topic_that_was_deleted_meanwhile_is_nobodys_damage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(universe: Universe) -> None:
        node = await a_node_with_orders(universe)
        partition = node.parts.replicas.get(*ORDERS)
        assert partition is not None
        segment = partition.log.segment_facts()[0]
        async with Admin(AT, ports=universe.ports) as admin:
            await admin.delete_topics(["orders"])
            await admin.create_topic("orders", partitions=1)
        flaw = Flaw(0, 10, Offset(0), Offset(1), "it is another one's")
        caplog.clear()
        node._scrubber(node.parts)._note(
            partition, ScrubbedSegment(partition.log.folder, segment, [flaw], "cannot be read")
        )
        assert partition.log.quarantine.entries == []
        assert caplog.records == []
        assert node.not_ready() is None
        await node.stop()

    run(scenario(Universe()))
