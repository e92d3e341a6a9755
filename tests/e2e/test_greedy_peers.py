"""Peers that want the node's memory for nothing, on raw sockets: others are served, and the memory stays bounded."""

import asyncio
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from riverlog.client.producer.producer import Producer
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.headers import encode_request
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.e2e.clients import create_topic
from tests.support.node import Node

MIB: Final = 1024 * 1024
FETCH: Final = API_BY_KEY[ApiKey.FETCH]
ANNOUNCED: Final = 100 * 1000 * 1000


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with Node(tmp_path) as node:
        create_topic(node.bootstrap, "orders")
        create_topic(node.bootstrap, "empty")
        yield node
        assert "Traceback" not in node.log_tail(10_000)
        assert node.stop() == 0


def resident(node: Node) -> int:
    return int(Path(f"/proc/{node.pid}/statm").read_text().split()[1]) * resource.getpagesize()


def fetch(topic: str, *, wait_ms: int, bytes_max: int, correlation_id: int) -> bytes:
    parts = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=bytes_max)]
    asked = FetchRequest(
        max_wait_ms=wait_ms, min_bytes=1, max_bytes=bytes_max, topics=[FetchTopic(topic=topic, partitions=parts)]
    )
    return encode_request(FETCH, 12, correlation_id, "peer", asked)


async def fill(node: Node, records: int, size: int) -> None:
    async with Producer(node.bootstrap) as producer:
        for _ in range(records):
            await producer.ready(size)
            producer.send_soon("orders", bytes(size), partition=0)


def test_answers_do_not_pile_up_behind_one_that_waits(node: Node) -> None:
    asyncio.run(fill(node, 100, 10_000))
    before = resident(node)
    with socket.create_connection(("127.0.0.1", node.port), timeout=60) as peer:
        count = 900
        peer.sendall(fetch("empty", wait_ms=3_000, bytes_max=MIB, correlation_id=0))
        peer.sendall(
            b"".join(fetch("orders", wait_ms=0, bytes_max=120_000, correlation_id=1 + n) for n in range(count))
        )
        asyncio.run(fill(node, 1, 10))
        assert resident(node) - before < 40 * MIB
        stream = peer.makefile("rb")
        for number in range(count + 1):
            answer = stream.read(int.from_bytes(stream.read(4)))
            assert int.from_bytes(answer[:4]) == number
            assert number == 0 or len(answer) > 100_000


def test_frames_that_are_only_announced_keep_nobody_waiting(node: Node) -> None:
    with ExitStack() as peers:
        for _ in range(200):
            peer = peers.enter_context(socket.create_connection(("127.0.0.1", node.port), timeout=60))
            peer.sendall(ANNOUNCED.to_bytes(4) + b"\0\0\0\x09" + bytes(66_000))

        async def honest() -> None:
            async with Producer(node.bootstrap, batch_bytes_max=MIB) as producer:
                async with asyncio.timeout(30):
                    for _ in range(20):
                        await producer.send("orders", bytes(500_000), partition=0)

        asyncio.run(honest())
