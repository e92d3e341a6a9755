"""The links between hosts: streams that belong to two of them, and that can be slowed, cut one way, or broken.

What is on its way when a link is cut is not lost: it is sent again once the link is there again, as TCP does. A process
that is killed closes its streams; of a host without power nobody hears, until it is back and answers that it knows
nothing of them.
"""

import asyncio
import errno
import os
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Final

from riverlog.model.ids import Address
from riverlog.model.ports import Buffer, File, Socket
from tests.simulation.cluster.universe import ProcessLoop, Universe

WINDOW_BYTES: Final = 256 * 1024
_SENT_AGAIN_SECONDS: Final = 0.4
"""How long after a link is back the bytes that were held up come through, at most."""


class Wires:
    """The network between all hosts."""

    def __init__(self, universe: Universe, random: Random) -> None:
        self.universe = universe
        self.cuts: set[tuple[str, str]] = set()
        """Directions in which nothing comes through."""
        self.latency = 0.0005
        self.slow: dict[str, float] = {}
        """How many seconds more each message takes from or to a host."""
        self.without_power: set[str] = set()
        self.listeners: dict[Address, WireListener] = {}
        self.random = random
        self._streams: list[tuple[WireSocket, WireSocket]] = []
        self._held_up: deque[Callable[[], None]] = deque()
        self._ports = 0

    def delay(self, source: str, target: str) -> float:
        slow = self.slow.get(source, 0.0) + self.slow.get(target, 0.0)
        return (self.latency + slow) * (0.5 + self.random.random())

    def passes(self, source: str, target: str) -> bool:
        return (source, target) not in self.cuts and target not in self.without_power

    def carry(self, source: str, target: str, at: float, work: Callable[[], object]) -> None:
        """Do something at the other end at this time, or, where the link is cut, once it is back."""

        def arrive() -> None:
            if (source, target) in self.cuts:
                self._held_up.append(arrive)
            else:
                work()

        self.universe.at(at, arrive)

    def cut(self, source: str, target: str) -> None:
        """Let nothing through in this direction."""
        self.cuts.add((source, target))

    def heal(self) -> None:
        """Let everything through again; what was held up comes soon."""
        self.cuts.clear()
        self.slow.clear()
        held_up, self._held_up = self._held_up, deque()
        at = self.universe.now + self.random.random() * _SENT_AGAIN_SECONDS
        for work in held_up:
            self.universe.at(at, work)

    def reset(self, host: str, share: float) -> None:
        """Break so many of a host's streams, for both sides."""
        for ours, theirs in self._open_streams():
            if host in (ours.host, theirs.host) and self.random.random() < share:
                ours.break_off()
                theirs.break_off()

    def process_ended(self, loop: ProcessLoop, *, power_lost: bool) -> None:
        """Take a process and its streams away. Without power, nobody is told."""
        for address in [address for address, each in self.listeners.items() if each.loop is loop]:
            del self.listeners[address]
        for stream in self._open_streams():
            for ours in stream:
                if ours.loop is loop:
                    ours.closed = True
                    if not power_lost:
                        ours.say_end()

    def power_returned(self, host: str) -> None:
        """Let a host answer that it knows nothing of the streams that it had."""
        self.without_power.discard(host)
        for stream in self._open_streams():
            for ours, theirs in (stream, stream[::-1]):
                if ours.host == host and ours.closed:
                    self.carry(host, theirs.host, self.universe.now + 0.2, theirs.break_off)

    def new_port(self) -> int:
        self._ports += 1
        return 20_000 + self._ports

    def join(self, ours: "WireSocket", theirs: "WireSocket") -> None:
        ours.other, theirs.other = theirs, ours
        self._streams.append((ours, theirs))

    def _open_streams(self) -> list[tuple["WireSocket", "WireSocket"]]:
        self._streams = [each for each in self._streams if not (each[0].is_over and each[1].is_over)]
        return self._streams


class HostNetwork:
    """The Network port as one process has it."""

    def __init__(self, wires: Wires, host: str, loop: ProcessLoop) -> None:
        self._wires = wires
        self._host = host
        self._loop = loop

    def listen(
        self, host: str, port: int, accepted: Callable[[Socket], None], held_up: Callable[[OSError], None] = print
    ) -> "WireListener":
        address = Address(host, port or self._wires.new_port())
        if address in self._wires.listeners:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        listener = self._wires.listeners[address] = WireListener(self._wires, address, self._loop, accepted)
        return listener

    async def connect(self, host: str, port: int) -> "WireSocket":
        wires, loop, address = self._wires, self._loop, Address(host, port)
        answer: asyncio.Future[WireSocket] = loop.create_future()
        local = Address(self._host, wires.new_port())

        def arrive() -> None:
            """Reach the host, which answers for the process: that one may stand still."""
            if host in wires.without_power or loop.is_dead:
                return  # nobody answers; the caller bounds the wait
            listener, socket = wires.listeners.get(address), None
            if listener is not None:
                socket = WireSocket(wires, self._host, loop, local=local, peer=address)
                theirs = WireSocket(wires, host, listener.loop, local=address, peer=local)
                wires.join(socket, theirs)
                listener.loop.call_soon(listener.accept, theirs)
            back = wires.universe.now + wires.delay(host, self._host)
            wires.carry(host, self._host, back, lambda: loop.is_dead or loop.call_soon(tell, socket))

        def tell(socket: WireSocket | None) -> None:
            if answer.done():
                if socket is not None:
                    socket.close()
            elif socket is None:
                answer.set_exception(ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED)))
            else:
                answer.set_result(socket)

        wires.carry(self._host, host, loop.now + wires.delay(self._host, host), arrive)
        return await answer


class WireListener:
    """The Listener port."""

    def __init__(self, wires: Wires, address: Address, loop: ProcessLoop, accepted: Callable[[Socket], None]) -> None:
        self.address = address
        self.loop = loop
        self._wires = wires
        self._accepted = accepted

    def accept(self, socket: "WireSocket") -> None:
        if self._wires.listeners.get(self.address) is self:
            self._accepted(socket)
        else:
            socket.close()

    def close(self) -> None:
        if self._wires.listeners.get(self.address) is self:
            del self._wires.listeners[self.address]


class WireSocket:
    """The Socket port: the end of a stream that one process on one host has."""

    def __init__(self, wires: Wires, host: str, loop: ProcessLoop, *, local: Address, peer: Address) -> None:
        self.host = host
        self.loop = loop
        self.local = local
        self.peer = peer
        self.other: WireSocket
        self.closed = False
        self.ended = False
        """The other side sends no more."""
        self.broken = False
        self._wires = wires
        self._inbox = bytearray()
        self._on_the_way: deque[bytes | None] = deque()  # None is the end of the stream
        self._on_the_way_bytes = 0
        self._arrives_at = 0.0
        self._readable: Callable[[], None] | None = None
        self._writable: Callable[[], None] | None = None
        self._poked = False

    @property
    def is_over(self) -> bool:
        return self.closed or self.broken

    def receive_into(self, buffer: memoryview) -> int:
        self._check()
        if not self._inbox:
            if self.ended:
                return 0
            raise BlockingIOError
        size = min(len(buffer), len(self._inbox))
        buffer[:size] = self._inbox[:size]
        del self._inbox[:size]
        if not self.other.closed:
            self.other.poke()
        return size

    def send(self, buffer: Buffer, *, more: bool = False) -> int:
        self._check()
        if self.ended and self.other.closed:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        room = self._room()
        if room <= 0:
            raise BlockingIOError
        data = bytes(buffer[:room])
        self._on_the_way.append(data)
        self._on_the_way_bytes += len(data)
        self._to_the_other(self._deliver)
        return len(data)

    def send_file(self, file: File, position: int, count: int) -> int:
        return self.send(file.read(position, count))

    def on_readable(self, callback: Callable[[], None] | None) -> None:
        self._readable = callback
        self.poke()

    def on_writable(self, callback: Callable[[], None] | None) -> None:
        self._writable = callback
        self.poke()

    def expect(self, count: int) -> None:
        """Do nothing: it may be called as often as bytes come."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._readable = self._writable = None
            self.say_end()

    def say_end(self) -> None:
        """Let the other side know that nothing more comes, behind what is on its way."""
        self._on_the_way.append(None)
        self._to_the_other(self._deliver)

    def break_off(self) -> None:
        """Lose the stream, and what was not read."""
        self.broken = True
        self._inbox.clear()
        self.poke()

    def poke(self) -> None:
        """Call back soon if there is reason to, and go on as long as there is."""
        if not self._poked and not self.closed and not self.loop.is_dead:
            self._poked = True
            self.loop.call_soon(self._call_back)

    def _check(self) -> None:
        if self.closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        if self.broken:
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))

    def _room(self) -> int:
        return WINDOW_BYTES - self._on_the_way_bytes - len(self.other._inbox)

    def _to_the_other(self, work: Callable[[], None]) -> None:
        """Do something at the other end, behind all that was sent before."""
        sent_at = self._wires.universe.now if self.loop.is_dead else self.loop.now
        self._arrives_at = max(self._arrives_at, sent_at + self._wires.delay(self.host, self.other.host))
        self._wires.carry(self.host, self.other.host, self._arrives_at, work)

    def _deliver(self) -> None:
        data = self._on_the_way.popleft()
        if data is None:
            self.other.ended = True
            self.other.poke()
            return
        if self.host in self._wires.without_power and self.loop.is_dead:
            return  # it was still in the host's memory
        if self.other.is_over:
            self._on_the_way_bytes -= len(data)
            if self.other.host not in self._wires.without_power:
                self.break_off()
            return
        self._on_the_way_bytes -= len(data)
        self.other._inbox += data
        self.other.poke()

    def _call_back(self) -> None:
        self._poked = False
        called = False
        if self._readable is not None and (self._inbox or self.ended or self.broken):
            self._readable()
            called = True
        if self._writable is not None and (self.broken or self._room() > 0):
            self._writable()
            called = True
        if called:
            self.poke()
