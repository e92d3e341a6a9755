"""Ask a simulated node in the version of one's choice, one request after the other or several at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from riverlog.model.ids import Address
from riverlog.node import Node
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.framing import FrameBuffer
from riverlog.wire.headers import decode_response, encode_request
from tests.support.network import MemorySocket
from tests.support.world import Universe


class Line:
    """A raw connection to a node."""

    def __init__(self, socket: MemorySocket) -> None:
        self._socket = socket
        self._frames = FrameBuffer(1 << 28)
        self._waiting: list[tuple[ApiKey, int, asyncio.Future[Any]]] = []
        self._sent = 0
        self._unsent = bytearray()
        self.frames: list[bytes] = []
        """All answers so far, as they came."""
        self.ended = asyncio.Event()
        socket.on_readable(self._readable)

    def send(self, key: ApiKey, version: int, request: object) -> "asyncio.Future[Any]":
        """Send a request; the future gives its response."""
        self._sent += 1
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((key, version, answered))
        self.send_bytes(encode_request(API_BY_KEY[key], version, self._sent, "test", request))
        return answered

    async def ask(self, key: ApiKey, version: int, request: object) -> Any:
        """Send a request and wait for its response."""
        return await self.send(key, version, request)

    def forget(self, answered: "asyncio.Future[Any]") -> None:
        """Expect no answer to a request that has none."""
        self._waiting = [waiting for waiting in self._waiting if waiting[2] is not answered]

    def send_bytes(self, data: bytes) -> None:
        """Send bytes, the rest of them whenever there is room."""
        self._unsent += data
        self._writable()

    def _writable(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self._socket.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:  # the node hung up, as `ended` tells
            self._unsent.clear()
        self._socket.on_writable(self._writable if self._unsent else None)

    def close(self) -> None:
        self._socket.close()

    def _readable(self) -> None:
        count = self._socket.receive_into(self._frames.room())
        if count == 0:
            self._socket.on_readable(None)
            self.ended.set()
            return
        self._frames.received(count)
        for frame in self._frames.frames():
            key, version, answered = self._waiting.pop(0)
            self.frames.append(bytes(frame))
            _correlation_id, response = decode_response(API_BY_KEY[key], version, self.frames[-1])
            if not answered.done():
                answered.set_result(response)


@asynccontextmanager
async def serving(universe: Universe | None = None, **settings: str) -> AsyncIterator[tuple[Line, Node]]:
    """Start a node in a universe of its own and give a line to it."""
    universe = universe or Universe()
    node = universe.node(**settings)
    await node.start()
    life = universe.disk.life
    try:
        yield await connected(universe), node
    finally:
        if universe.disk.life == life:  # otherwise the power was lost, and the node with it
            await node.stop()


async def connected(universe: Universe) -> Line:
    """Connect one more line to the universe's node."""
    return Line(await universe.network.connect(*Address("node", 9092)))
