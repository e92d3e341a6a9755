"""Compaction in a real node: another process does the work, and kill -9 in the middle of it costs nothing."""

import asyncio
from pathlib import Path

from riverlog import Admin, Consumer, Producer
from riverlog.model.ids import TopicPartition
from tests.support.node import Node
from tests.support.waiting import until

ORDERS = TopicPartition("orders", 0)
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "32768",
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "0",
}
SETTINGS = {"log.cleaner.backoff.ms": "50"}


async def write(node: Node, rounds: range) -> dict[bytes, bytes]:
    """Write a hundred keys again and again; give what they are worth in the end."""
    newest = {}
    async with Producer(node.bootstrap, compression="lz4") as producer:
        for number in rounds:
            for key in range(100):
                newest[b"%d" % key] = value = b"%d" % number * 20
                producer.send_soon("orders", key=b"%d" % key, value=value)
            await producer.flush()
    return newest


async def read(node: Node) -> list[tuple[bytes | None, bytes | None]]:
    async with Consumer(node.bootstrap) as consumer:
        consumer.assign([ORDERS])
        await consumer.seek_to_beginning(ORDERS)
        found = []
        while records := await consumer.poll(timeout_ms=500):
            found += [(record.key, record.value) for record in records]
        return found


async def create(node: Node) -> None:
    async with Admin(node.bootstrap) as admin:
        await admin.create_topic("orders", partitions=1, configs=COMPACTED)


def compactions(node: Node) -> int:
    return (node.folder / "node.log").read_text().count("log compacted")


def wait_for(node: Node, count: int) -> None:
    until(lambda: compactions(node) >= count, node.log_tail)


def wait_for_work(node: Node, done_before: int) -> None:
    """Wait until a compaction is under way, or was quicker than we are."""

    def is_compacting() -> bool:
        return any(path.suffix in (".cleaned", ".swap") for path in (node.data / "orders-0").iterdir())

    until(lambda: is_compacting() or compactions(node) > done_before, node.log_tail)


def test_a_log_shrinks_while_clients_work(tmp_path: Path) -> None:
    with Node(tmp_path, settings=SETTINGS) as node:
        asyncio.run(create(node))
        newest = asyncio.run(write(node, range(400)))
        wait_for(node, 1)
        assert dict(asyncio.run(read(node))) == newest
        until(lambda: len(asyncio.run(read(node))) < 30_000, node.log_tail)  # the first pass may find little to do
        assert dict(asyncio.run(read(node))) == newest
        assert node.stop() == 0
        node.start()
        assert dict(asyncio.run(read(node))) == newest


def test_kill_9_at_any_moment_loses_no_value(tmp_path: Path) -> None:
    with Node(tmp_path, settings=SETTINGS) as node:
        asyncio.run(create(node))
        for turn in range(6):
            before = compactions(node)
            newest = asyncio.run(write(node, range(100 * turn, 100 * turn + 100)))
            if turn % 2:
                wait_for_work(node, before)
            node.kill()
            node.start()
            assert dict(asyncio.run(read(node))) == newest
        before = compactions(node)
        newest = asyncio.run(write(node, range(600, 700)))
        wait_for(node, before + 1)
        assert dict(asyncio.run(read(node))) == newest
        assert node.stop() == 0
        names = [path.name for path in (node.data / "orders-0").iterdir()]
        assert not any(name.endswith((".cleaned", ".swap")) for name in names), names
