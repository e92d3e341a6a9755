"""TCP behind the Network port: raw non-blocking sockets watched by the running event loop.

Raw sockets, because they give receive-into-place, gathered sends and `sendfile`; asyncio's streams give none of
these. See docs/adr/0005-raw-sockets-on-one-loop.md.
"""

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from typing import Any, Final

from riverlog.model.ids import Address
from riverlog.model.ports import Buffer, File, Socket

_BACKLOG: Final = 1024
_ACCEPTS_PER_TURN: Final = 64
_PAUSE_WITHOUT_DESCRIPTORS_SECONDS: Final = 0.1
_EXPECTED_BYTES_MAX: Final = 1024 * 1024
_MORE: Final = getattr(socket, "MSG_MORE", 0)  # Linux has it; elsewhere a small packet more does no harm
_NO_SUCH_ADDRESS: Final = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
_OUT_OF_DESCRIPTORS: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class TcpSocket:
    """The Socket port over one connected TCP stream."""

    __slots__ = (
        "_descriptor", "_expected", "_loop", "_reading", "_socket", "_writing", "local", "peer", "receive_into",
    )  # fmt: skip

    def __init__(self, connected: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connected
        self.receive_into: Callable[[memoryview], int] = connected.recv_into  # a method here would only call it
        self._descriptor = connected.fileno()
        self._loop = loop
        self._reading = False
        self._writing = False
        self._expected = 1
        self.local = Address(*connected.getsockname()[:2])
        self.peer = Address(*connected.getpeername()[:2])

    def send(self, buffer: Buffer, *, more: bool = False) -> int:
        return self._socket.send(buffer, _MORE) if more else self._socket.send(buffer)

    def send_file(self, file: File, position: int, count: int) -> int:
        return os.sendfile(self._descriptor, file.fileno(), position, count)

    def on_readable(self, callback: Callable[[], None] | None) -> None:
        if callback is not None:
            self._loop.add_reader(self._descriptor, callback)
            self._reading = True
        elif self._reading:
            self._loop.remove_reader(self._descriptor)
            self._reading = False

    def on_writable(self, callback: Callable[[], None] | None) -> None:
        if callback is not None:
            self._loop.add_writer(self._descriptor, callback)
            self._writing = True
        elif self._writing:
            self._loop.remove_writer(self._descriptor)
            self._writing = False

    def expect(self, count: int) -> None:
        """Ask the system to wake us once for many bytes, and give the stream the room for them, where it may."""
        expected = max(1, min(count, _EXPECTED_BYTES_MAX))
        if expected != self._expected:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, expected)
            self._expected = expected

    def close(self) -> None:
        if self._descriptor < 0:
            return
        self.on_readable(None)
        self.on_writable(None)
        self._descriptor = -1
        self._socket.close()


class TcpListener:
    """The Listener port: every address that the host name stands for, on one port."""

    def __init__(
        self, sockets: list[socket.socket], accepted: Callable[[Socket], None], held_up: Callable[[OSError], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._sockets = sockets
        self._accepted = accepted
        self._held_up = held_up
        self._pause: asyncio.TimerHandle | None = None
        self.address = Address(*sockets[0].getsockname()[:2])
        self._watch()

    def close(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
        for listening in self._sockets:
            self._loop.remove_reader(listening.fileno())
            listening.close()
        self._sockets = []

    def _watch(self) -> None:
        self._pause = None
        for listening in self._sockets:
            self._loop.add_reader(listening.fileno(), self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        """Accept what waits, a bounded number at a time; without descriptors, pause instead of spinning."""
        for _ in range(_ACCEPTS_PER_TURN):
            try:
                connected, _peer = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _OUT_OF_DESCRIPTORS:
                    raise
                self._rest(error)
                return
            try:
                ours = TcpSocket(connected, self._loop)
            except OSError:  # the peer was gone before we looked
                connected.close()
                continue
            self._accepted(ours)

    def _rest(self, error: OSError) -> None:
        """Accept nothing for a moment: who is on the way out may leave a descriptor."""
        if self._pause is None:
            for each in self._sockets:
                self._loop.remove_reader(each.fileno())
            self._pause = self._loop.call_later(_PAUSE_WITHOUT_DESCRIPTORS_SECONDS, self._watch)
        self._held_up(error)


def _ignore(_error: OSError) -> None:
    """Leave it to the next attempt."""


class TcpNetwork:
    """The Network port over TCP."""

    def listen(
        self, host: str, port: int, accepted: Callable[[Socket], None], held_up: Callable[[OSError], None] = _ignore
    ) -> TcpListener:
        sockets: list[socket.socket] = []
        missing: OSError | None = None
        for family, address in _resolve(host, port):
            taken = sockets[0].getsockname()[1] if sockets else port
            try:
                sockets.append(_bind(family, (address[0], taken, *address[2:])))
            except OSError as error:
                missing = error
                if error.errno not in _NO_SUCH_ADDRESS:
                    for bound in sockets:
                        bound.close()
                    raise
        if missing is not None and not sockets:  # some is enough: a host without IPv6 still calls ::1 localhost
            raise missing
        return TcpListener(sockets, accepted, held_up)

    async def connect(self, host: str, port: int) -> TcpSocket:
        loop = asyncio.get_running_loop()
        failure: OSError | None = None
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except UnicodeError:  # a part of more than 63 letters, or half a surrogate pair
            raise _no_name() from None
        for family, kind, protocol, _name, address in found:
            stream = socket.socket(family, kind, protocol)
            stream.setblocking(False)
            try:
                await loop.sock_connect(stream, address)
                return TcpSocket(stream, loop)
            except OSError as error:
                stream.close()
                failure = type(error)(error.errno, os.strerror(error.errno or 0))  # asyncio's text says less
            except BaseException:
                stream.close()
                raise
        raise failure or OSError(errno.EHOSTUNREACH, f"{host} has no address")


def _resolve(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[str | int, ...]]]:
    """List each address once, IPv4 first: that is the one to print."""
    try:
        found = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except UnicodeError:
        raise _no_name() from None
    unique: dict[tuple[socket.AddressFamily, tuple[Any, ...]], None] = {
        (family, address): None for family, _kind, _protocol, _name, address in found
    }
    return sorted(((family, address) for family, address in unique), key=lambda each: each[0] != socket.AF_INET)


def _no_name() -> OSError:
    return socket.gaierror(socket.EAI_NONAME, "this cannot be the name of a host")


def _bind(family: socket.AddressFamily, address: tuple[str | int, ...]) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(address[0] != "::"))
        listening.bind(address)
        listening.listen(_BACKLOG)
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening
