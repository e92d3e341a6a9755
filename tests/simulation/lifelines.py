"""The network as one client has it: cut when the client dies, and held back while it is frozen.

What a frozen client sends arrives once it thaws, be it that the client has closed the connection meanwhile: so requests
come long after others that were sent later. What a dead one sends arrives nowhere.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from riverlog.client.ports import Ports
from riverlog.model.ports import Buffer, File, Listener, Socket
from tests.simulation.machine import Machine


class Lifeline:
    """The Network port of one client."""

    def __init__(self, machine: Machine) -> None:
        self.is_dead = False
        self._network = machine.network
        self._thawed = asyncio.Event()
        self._thawed.set()
        self._sockets: list[_HeldSocket] = []
        self.ports = Ports(self, machine.clock, machine.ports.random)

    @property
    def is_frozen(self) -> bool:
        return not self._thawed.is_set()

    def freeze(self) -> None:
        """Hold back all that comes and goes."""
        self._thawed.clear()
        for socket in self._sockets:
            socket.hold()

    def freeze_for(self, seconds: float) -> None:
        """Hold back what comes and goes for a while."""
        self.freeze()
        asyncio.get_running_loop().call_later(seconds, self.thaw)

    def thaw(self) -> None:
        """Pass on what was held back."""
        self._thawed.set()
        for socket in self._sockets:
            socket.thaw()

    def die(self) -> None:
        """End all streams; what was sent before may still arrive, unless it was held back."""
        self.is_dead = True
        self._thawed.set()
        for socket in self._sockets:
            socket.die()

    async def connect(self, host: str, port: int) -> Socket:
        await self._thawed.wait()
        if self.is_dead:
            raise ConnectionRefusedError(111, "Connection refused")
        socket = _HeldSocket(self, await self._network.connect(host, port))
        self._sockets = [each for each in self._sockets if not each.is_over]
        self._sockets.append(socket)
        return socket

    def listen(
        self, host: str, port: int, accepted: Callable[[Socket], None], held_up: Callable[[OSError], None] = print
    ) -> Listener:
        raise NotImplementedError("clients do not listen")


class _HeldSocket:
    """The Socket port around another socket."""

    def __init__(self, line: Lifeline, socket: Any) -> None:
        self._line = line
        self._socket = socket
        self._held = bytearray()
        self._closing = False
        self._readable: Callable[[], None] | None = None

    @property
    def local(self) -> Any:
        return self._socket.local

    @property
    def peer(self) -> Any:
        return self._socket.peer

    @property
    def is_over(self) -> bool:
        return bool(self._socket.closed)

    def receive_into(self, buffer: memoryview) -> int:
        count: int = self._socket.receive_into(buffer)
        return count

    def send(self, buffer: Buffer, *, more: bool = False) -> int:
        if self._line.is_frozen and not self._socket.closed:
            self._held += buffer
            return len(buffer)
        count: int = self._socket.send(buffer, more=more)
        return count

    def send_file(self, file: File, position: int, count: int) -> int:
        return self.send(file.read(position, count))

    def on_readable(self, callback: Callable[[], None] | None) -> None:
        self._readable = callback
        self._socket.on_readable(None if self._line.is_frozen else callback)

    def expect(self, count: int) -> None:
        self._socket.expect(count)

    def on_writable(self, callback: Callable[[], None] | None) -> None:
        self._socket.on_writable(callback)

    def close(self) -> None:
        if self._line.is_frozen and self._held:
            self._closing = True
            self._readable = None
        else:
            self._socket.close()

    def hold(self) -> None:
        """Keep from everybody that there is something to receive."""
        if not self._socket.closed:
            self._socket.on_readable(None)

    def thaw(self) -> None:
        """Send what was held back, where there is still somebody to take it."""
        held, self._held = bytes(self._held), bytearray()
        try:
            sent = self._socket.send(held) if held else 0
            assert sent == len(held), "clients of a simulation send less than a window while they are frozen"
        except OSError:
            pass  # the other side is gone
        if self._closing:
            self._socket.close()
        elif not self._socket.closed:
            self._socket.on_readable(self._readable)

    def die(self) -> None:
        self._held.clear()
        self._readable = None
        self._socket.close()
