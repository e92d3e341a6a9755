"""Idle, slow and lying peers cannot hold the node's memory, nor keep others from being served."""

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.headers import encode_request
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.e2e.clients import create_topic, send
from tests.support.node import Node

MIB: Final = 1024 * 1024


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with Node(tmp_path, settings={"connections.max.idle.ms": "1000"}) as node:
        create_topic(node.bootstrap, "orders")
        send(node.bootstrap, "orders", [b"x" * 500_000] * 20)
        yield node


def resident(node: Node) -> int:
    return int(Path(f"/proc/{node.pid}/statm").read_text().split()[1]) * 4096


def connect(node: Node) -> socket.socket:
    return socket.create_connection(("127.0.0.1", node.port), timeout=20)


def test_idle_peers_cost_little_and_are_sent_away(node: Node) -> None:
    before = resident(node)
    with ExitStack() as open_sockets:
        peers = [open_sockets.enter_context(connect(node)) for _ in range(300)]
        send(node.bootstrap, "orders", [b"others are served"])
        assert resident(node) - before < 10 * MIB
        for peer in peers:
            assert peer.recv(1) == b""  # within the idle time and one sweep, or the time-out of the socket


def test_a_length_is_not_believed_before_its_bytes_arrive(node: Node) -> None:
    before = resident(node)
    with ExitStack() as open_sockets:
        for _ in range(50):
            peer = open_sockets.enter_context(connect(node))
            peer.sendall(struct.pack(">i", 100 * MIB) + b"\x00\x00\x00\x0b" + bytes(1_000))
        send(node.bootstrap, "orders", [b"others are served"])
        assert resident(node) - before < 20 * MIB


def test_a_peer_that_does_not_read_is_not_read_from(node: Node) -> None:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10 * MIB)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=10 * MIB, topics=[FetchTopic(topic="orders", partitions=[partition])]
    )
    fetch = encode_request(API_BY_KEY[ApiKey.FETCH], 11, 1, "slow", request)
    before = resident(node)
    with ExitStack() as open_sockets:
        for _ in range(10):
            peer = open_sockets.enter_context(connect(node))
            peer.setblocking(False)
            sent = 0
            deadline = time.monotonic() + 10
            while sent < 20 * MIB and time.monotonic() < deadline:  # far more requests than answers fit anywhere
                try:
                    sent += peer.send(fetch * 1_000)
                except BlockingIOError:
                    break
            assert sent < 20 * MIB
        send(node.bootstrap, "orders", [b"others are served"])
        assert resident(node) - before < 60 * MIB
