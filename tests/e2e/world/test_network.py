"""TCP behind the port: the same promises as the network in memory, kept by real sockets."""

import asyncio
import errno
import os
import resource
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from riverlog.world.disk import FileSystem
from riverlog.world.network import TcpNetwork, TcpSocket


async def pair(network: TcpNetwork) -> tuple[TcpSocket, TcpSocket]:
    """Return both ends of one connection."""
    accepted: asyncio.Future[TcpSocket] = asyncio.get_running_loop().create_future()
    listener = network.listen("127.0.0.1", 0, accepted.set_result)  # type: ignore[arg-type]
    ours = await network.connect(*listener.address)
    theirs = await accepted
    listener.close()
    return ours, theirs


async def readable(end: TcpSocket) -> None:
    ready = asyncio.Event()
    end.on_readable(ready.set)
    await asyncio.wait_for(ready.wait(), 5)
    end.on_readable(None)


async def receive(end: TcpSocket, count: int) -> bytes:
    data = bytearray()
    room = memoryview(bytearray(65_536))
    while len(data) < count:
        await readable(end)
        data += room[: end.receive_into(room)]
    return bytes(data)


def test_bytes_arrive_in_order_and_the_end_is_seen() -> None:
    async def scenario() -> None:
        ours, theirs = await pair(TcpNetwork())
        assert ours.peer == theirs.local
        assert theirs.peer == ours.local
        assert ours.send(b"head", more=True) == 4
        assert ours.send(memoryview(b"body"), more=True) == 4
        assert ours.send(b"tail") == 4
        assert await receive(theirs, 12) == b"headbodytail"
        with pytest.raises(BlockingIOError):
            theirs.receive_into(memoryview(bytearray(10)))
        ours.close()
        ours.close()
        await readable(theirs)
        assert theirs.receive_into(memoryview(bytearray(10))) == 0
        theirs.close()

    asyncio.run(scenario())


def test_who_expects_many_bytes_is_called_for_all_of_them_or_at_the_end() -> None:
    async def scenario() -> None:
        ours, theirs = await pair(TcpNetwork())
        room = memoryview(bytearray(300_000))
        theirs.expect(80_000)
        half = bytes(40_000)
        assert ours.send(half) == len(half)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(readable(theirs), 0.05)
        assert ours.send(half) == len(half)
        await readable(theirs)
        assert theirs.receive_into(room) == 80_000
        theirs.expect(100_000)
        ours.send(b"last words")
        ours.close()
        await readable(theirs)
        assert theirs.receive_into(room) == len(b"last words")
        theirs.close()

    asyncio.run(scenario())


def test_files_are_sent_from_where_they_lie(tmp_path: Path) -> None:
    async def scenario() -> None:
        ours, theirs = await pair(TcpNetwork())
        file = FileSystem().open(str(tmp_path / "x.log"), create=True)
        content = bytes(range(256)) * 4_096
        file.write(0, [content])
        sent = 0
        got = b""
        while sent < len(content) - 100:
            sent += ours.send_file(file, 100 + sent, len(content) - 100 - sent)
            got += await receive(theirs, sent - len(got))
        assert got == content[100:]
        file.close()
        ours.close()
        theirs.close()

    asyncio.run(scenario())


def test_a_full_socket_says_not_now_and_later_says_when() -> None:
    async def scenario() -> None:
        ours, theirs = await pair(TcpNetwork())
        sent = 0
        for _ in range(1_000):
            try:
                sent += ours.send(bytes(1 << 20))
            except BlockingIOError:
                break
        assert sent < 1_000 << 20
        writable = asyncio.Event()
        ours.on_writable(writable.set)
        await receive(theirs, sent)
        await asyncio.wait_for(writable.wait(), 5)
        ours.close()
        theirs.close()

    asyncio.run(scenario())


def test_a_busy_port_and_a_deaf_one_are_errors() -> None:
    async def scenario() -> None:
        network = TcpNetwork()
        nobody: Callable[[object], None] = lambda _socket: None  # noqa: E731
        listener = network.listen("127.0.0.1", 0, nobody)
        with pytest.raises(OSError, match="in use"):
            network.listen("127.0.0.1", listener.address.port, nobody)
        listener.close()
        with pytest.raises(ConnectionRefusedError):
            await network.connect(*listener.address)

    asyncio.run(scenario())


def test_without_descriptors_the_listener_rests_and_goes_on() -> None:
    async def scenario() -> None:
        network = TcpNetwork()
        accepted: asyncio.Queue[object] = asyncio.Queue()
        held_up: asyncio.Queue[OSError] = asyncio.Queue()
        listener = network.listen("127.0.0.1", 0, accepted.put_nowait, held_up.put_nowait)
        client = socket.socket()
        client.setblocking(False)
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        await asyncio.sleep(0)
        resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 1, before[1]))
        taken = _take_all_descriptors()
        try:
            await asyncio.get_running_loop().sock_connect(client, listener.address)
            for _ in range(2):
                assert (await asyncio.wait_for(held_up.get(), 5)).errno == errno.EMFILE
            assert accepted.empty()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            for descriptor in taken:
                os.close(descriptor)
        end = await asyncio.wait_for(accepted.get(), 5)
        end.close()  # type: ignore[attr-defined]
        client.close()
        listener.close()

    asyncio.run(scenario())


def _take_all_descriptors() -> list[int]:
    taken = []
    while True:
        try:
            taken.append(os.dup(0))
        except OSError:
            return taken


def test_localhost_means_every_address_it_has() -> None:
    async def scenario() -> None:
        network = TcpNetwork()
        accepted: list[object] = []
        listener = network.listen("localhost", 0, accepted.append)
        families = {found[0] for found in socket.getaddrinfo("localhost", 0, type=socket.SOCK_STREAM)}
        for host in ("127.0.0.1", "::1") if socket.AF_INET6 in families and socket.has_ipv6 else ("127.0.0.1",):
            try:
                (await network.connect(host, listener.address.port)).close()
            except OSError:
                assert host == "::1", "a host without IPv6 may still name it"
        await asyncio.sleep(0)
        assert listener.address.host == "127.0.0.1"
        listener.close()
        for end in accepted:
            end.close()  # type: ignore[attr-defined]

    asyncio.run(scenario())


@pytest.mark.parametrize("host", ["x" * 64, "\ud800"])
def test_what_cannot_be_the_name_of_a_host_cannot_be_reached(host: str) -> None:
    async def scenario() -> None:
        with pytest.raises(OSError, match="cannot be the name of a host"):
            await TcpNetwork().connect(host, 9092)
        with pytest.raises(OSError, match="cannot be the name of a host"):
            TcpNetwork().listen(host, 0, lambda _socket: None)

    asyncio.run(scenario())
