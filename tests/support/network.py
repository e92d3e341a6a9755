"""The Network port in memory: ordered, deterministic, and as slow, narrow or broken as a test wants it."""

import asyncio
from collections import deque
from collections.abc import Callable

from riverlog.model.ids import Address
from riverlog.model.ports import Buffer, File, Socket


class MemoryNetwork:
    """Streams between listeners and those who connect, all in one event loop."""

    def __init__(self, *, latency_seconds: float = 0.001, window_bytes: int = 256 * 1024) -> None:
        self.latency_seconds = latency_seconds
        self.window_bytes = window_bytes
        self.unreachable: set[Address] = set()
        """Addresses whose connections are never answered, as behind a firewall that drops."""
        self.connects: list[Address] = []
        self._listeners: dict[Address, MemoryListener] = {}
        self._accepted: dict[Address, list[MemorySocket]] = {}
        self._ports_given = 0

    def listen(
        self, host: str, port: int, accepted: Callable[[Socket], None], held_up: Callable[[OSError], None] = print
    ) -> "MemoryListener":
        if port == 0:
            self._ports_given += 1
            port = 20_000 + self._ports_given
        address = Address(host, port)
        if address in self._listeners:
            raise OSError(98, "Address already in use")
        self._listeners[address] = MemoryListener(self, address, accepted, held_up)
        return self._listeners[address]

    async def connect(self, host: str, port: int) -> "MemorySocket":
        address = Address(host, port)
        self.connects.append(address)
        if address in self.unreachable:
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(self.latency_seconds)
        listener = self._listeners.get(address)
        if listener is None:
            raise ConnectionRefusedError(111, "Connection refused")
        self._ports_given += 1
        ours = MemorySocket(self, local=Address("client", 40_000 + self._ports_given), peer=address)
        theirs = MemorySocket(self, local=address, peer=ours.local)
        ours.other, theirs.other = theirs, ours
        self._accepted.setdefault(address, []).append(theirs)
        listener.accepted(theirs)
        return ours

    def forget(self, address: Address) -> None:
        self._listeners.pop(address, None)

    def cut_off(self, host: str, port: int) -> None:
        """End all streams to an address, as if its cable was pulled: nothing of what was sent arrives."""
        for stream in self._accepted.pop(Address(host, port), []):
            stream.close()


class MemoryListener:
    """The Listener port."""

    def __init__(
        self,
        network: MemoryNetwork,
        address: Address,
        accepted: Callable[[Socket], None],
        held_up: Callable[[OSError], None],
    ) -> None:
        self.address = address
        self.accepted = accepted
        self.held_up = held_up
        self._network = network

    def close(self) -> None:
        self._network.forget(self.address)


class MemorySocket:
    """The Socket port: one end of a stream. Bytes arrive after the network's latency, in order."""

    def __init__(self, network: MemoryNetwork, *, local: Address, peer: Address) -> None:
        self.local = local
        self.peer = peer
        self.other: MemorySocket
        self._network = network
        self._loop = asyncio.get_running_loop()
        self._inbox = bytearray()
        self._on_the_way: deque[bytes] = deque()  # timers of the same moment come in any order; bytes must not
        self._ended = False
        self.closed = False
        self._readable: Callable[[], None] | None = None
        self._writable: Callable[[], None] | None = None
        self._poked = False

    def receive_into(self, buffer: memoryview) -> int:
        if self.closed:
            raise OSError(9, "Bad file descriptor")
        if not self._inbox:
            if self._ended:
                return 0
            raise BlockingIOError
        count = min(len(buffer), len(self._inbox))
        buffer[:count] = self._inbox[:count]
        del self._inbox[:count]
        self.other._poke()
        return count

    def send(self, buffer: Buffer, *, more: bool = False) -> int:
        if self.closed or self.other.closed:
            raise BrokenPipeError(32, "Broken pipe")
        room = self._room()
        if room <= 0:
            raise BlockingIOError
        data = bytes(buffer[:room])
        self._on_the_way.append(data)
        self._loop.call_later(self._network.latency_seconds, self._deliver)
        return len(data)

    def send_file(self, file: File, position: int, count: int) -> int:
        return self.send(file.read(position, count))

    def on_readable(self, callback: Callable[[], None] | None) -> None:
        self._readable = callback
        self._poke()

    def expect(self, count: int) -> None:
        """Do nothing: it may be called as often as bytes come."""

    def on_writable(self, callback: Callable[[], None] | None) -> None:
        self._writable = callback
        self._poke()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._readable = self._writable = None
            self._loop.call_later(self._network.latency_seconds, self.other.end)

    def _room(self) -> int:
        return self._network.window_bytes - sum(map(len, self._on_the_way)) - len(self.other._inbox)

    def _deliver(self) -> None:
        data = self._on_the_way.popleft()
        if not self.other.closed:
            self.other._inbox += data
            self.other._poke()

    def end(self) -> None:
        self._ended = True
        self._poke()

    def _poke(self) -> None:
        """Call back soon if there is reason to, and go on as long as there is."""
        if not self._poked and not self.closed:
            self._poked = True
            self._loop.call_soon(self._call_back)

    def _call_back(self) -> None:
        self._poked = False
        called = False
        if self._readable is not None and (self._inbox or self._ended):
            self._readable()
            called = True
        if self._writable is not None and self._room() > 0:
            self._writable()
            called = True
        if called:
            self._poke()
