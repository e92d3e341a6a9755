"""A node that may have few files open: it turns clients away and lets go of files, and nothing is lost.

`DESCRIPTORS=full` is the long form: 600 partitions and 1,000 peers instead of 150 each.
"""

import asyncio
import os
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from riverlog.client.consumer.consumer import Consumer
from riverlog.client.errors import KafkaError
from riverlog.client.producer.producer import Producer
from riverlog.model.ids import TopicPartition
from tests.e2e.clients import create_topic
from tests.support.node import Node
from tests.support.waiting import until

DESCRIPTORS: Final = 256
MANY: Final = os.environ.get("DESCRIPTORS") == "full"
PARTITIONS: Final = 600 if MANY else 150
PEERS: Final = 1_000 if MANY else 150
LARGE: Final = bytes(200_000)
"""Sent from the file, which stays open until then."""


def value(partition: int) -> bytes:
    return b"to %d" % partition


async def write(bootstrap: str) -> None:
    """Send one record to each partition, all in one request."""
    async with Producer(bootstrap, linger_ms=300) as producer:
        for partition in range(PARTITIONS):
            producer.send_soon("wide", value(partition), partition=partition)
        await producer.flush()
        for partition in range(PARTITIONS // 2):
            await producer.ready(len(LARGE))
            producer.send_soon("wide", LARGE, partition=partition)


async def read(bootstrap: str) -> dict[int, list[bytes | None]]:
    found: dict[int, list[bytes | None]] = {partition: [] for partition in range(PARTITIONS)}
    async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("wide", partition) for partition in found])
        async with asyncio.timeout(60):
            for _ in range(PARTITIONS + PARTITIONS // 2):
                record = await anext(consumer)
                found[record.partition].append(record.value)
    return found


def check(node: Node) -> None:
    found = asyncio.run(read(node.bootstrap))
    assert found == {
        partition: [value(partition), *([LARGE] if partition < PARTITIONS // 2 else [])]
        for partition in range(PARTITIONS)
    }


@pytest.mark.parametrize("durability", ["fsync", "os"])
def test_more_partitions_than_descriptors(tmp_path: Path, durability: str) -> None:
    node = Node(tmp_path, descriptors_max=DESCRIPTORS, settings={"durability": durability})
    with node:
        create_topic(node.bootstrap, "wide", partitions=PARTITIONS)
        asyncio.run(write(node.bootstrap))
        check(node)
        node.kill()
        node.start()
        check(node)
        assert node.stop() == 0, node.log_tail()
        assert "Too many open files" not in node.log_tail(10_000)


def test_more_peers_than_descriptors(tmp_path: Path) -> None:
    with Node(tmp_path, descriptors_max=DESCRIPTORS) as node, ExitStack() as peers:
        create_topic(node.bootstrap, "wide", partitions=PARTITIONS)

        async def meanwhile() -> None:
            async with Producer(node.bootstrap) as honest:
                await honest.send("wide", b"before", partition=0)
                crowd = [
                    peers.enter_context(socket.create_connection(("127.0.0.1", node.port), timeout=30))
                    for _ in range(PEERS)
                ]
                await honest.send("wide", b"among many", partition=0)
                for peer in crowd:
                    peer.close()

        asyncio.run(meanwhile())
        until(lambda: served(node), lambda: f"nobody comes in any more\n{node.log_tail()}")
        assert node.stop() == 0, node.log_tail()


def served(node: Node) -> bool:
    async def ask() -> None:
        async with Producer(node.bootstrap, block_ms_max=1_000) as producer:
            await producer.send("wide", b"after", partition=1)

    try:
        asyncio.run(ask())
    except KafkaError:
        return False
    return True
