"""Peers by the thousand, peers that trickle, close one half or vanish: the node answers, forgets them, and lives on."""

import resource
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.headers import encode_request
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from tests.e2e.clients import create_topic, send
from tests.support.node import Node
from tests.support.waiting import until

MIB: Final = 1024 * 1024
PEERS: Final = 2_000
SECONDS_MAX: Final = 60.0
ASKED: Final = encode_request(API_BY_KEY[ApiKey.API_VERSIONS], 0, 42, "peer", ApiVersionsRequest())
RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends a reset, whatever is under way


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    with Node(tmp_path) as node:
        create_topic(node.bootstrap, "orders")
        send(node.bootstrap, "orders", [b"warm up"])
        yield node
        send(node.bootstrap, "orders", [b"others are served"])
        assert "Traceback" not in node.log_tail(10_000)
        assert node.stop() == 0
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def connect(node: Node) -> socket.socket:
    return socket.create_connection(("127.0.0.1", node.port), timeout=SECONDS_MAX)


def answer(peer: socket.socket) -> bytes:
    """Return the correlation id of the next answer."""
    stream = peer.makefile("rb")
    return stream.read(int.from_bytes(stream.read(4)))[:4]


def files(node: Node) -> int:
    return sum(1 for _ in Path(f"/proc/{node.pid}/fd").iterdir())


def resident(node: Node) -> int:
    return int(Path(f"/proc/{node.pid}/statm").read_text().split()[1]) * resource.getpagesize()


def wait_until_forgotten(node: Node, files_before: int) -> None:
    until(
        lambda: files(node) <= files_before + 10,
        lambda: "connections that are gone are still held",
        seconds_max=SECONDS_MAX,
    )


def test_thousands_at_once_are_answered_within_bounded_memory(node: Node) -> None:
    files_before, resident_before = files(node), resident(node)
    with ExitStack() as open_sockets:
        peers = [open_sockets.enter_context(connect(node)) for _ in range(PEERS)]
        for peer in peers:
            peer.sendall(ASKED)
        assert {answer(peer) for peer in peers} == {ASKED[8:12]}
        assert files(node) >= PEERS
        assert resident(node) - resident_before < PEERS * 24 * 1024
        send(node.bootstrap, "orders", [b"others are served"])
    wait_until_forgotten(node, files_before)


def test_storms_of_peers_that_vanish_leave_nothing(node: Node) -> None:
    files_before, resident_before = files(node), resident(node)
    for sent in (b"", ASKED[:9], ASKED * 50):
        for _ in range(PEERS // 2):
            with connect(node) as peer:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                peer.sendall(sent)
    wait_until_forgotten(node, files_before)
    assert resident(node) - resident_before < 16 * MIB


def test_a_request_may_arrive_byte_by_byte(node: Node) -> None:
    with ExitStack() as open_sockets:
        peers = [open_sockets.enter_context(connect(node)) for _ in range(100)]
        for peer in peers:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in ASKED:
            for peer in peers:
                peer.sendall(bytes([byte]))
        assert {answer(peer) for peer in peers} == {ASKED[8:12]}


def test_who_closes_its_half_is_still_answered_and_then_forgotten(node: Node) -> None:
    files_before = files(node)
    with ExitStack() as open_sockets:
        for asked in (ASKED, ASKED + ASKED[:7]):
            peer = open_sockets.enter_context(connect(node))
            peer.sendall(asked)
            peer.shutdown(socket.SHUT_WR)
            assert answer(peer) == ASKED[8:12]
            assert peer.recv(1) == b""
        wait_until_forgotten(node, files_before)
