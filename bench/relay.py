"""A link with delay: a TCP relay in a process of its own that holds all it is given for a while, in both directions.

    python -m bench.relay HOST PORT DELAY_MS      prints the port on which it listens

It needs no privileges, unlike the kernel's own emulation. Bandwidth is not limited.
"""

import asyncio
import contextlib
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.trial import Failed, Node

HELD_BYTES_MAX: Final = 64 << 20
"""What one direction of one connection holds before it stops reading."""


@dataclass(frozen=True, slots=True)
class Link:
    """Where to connect to, in place of the node itself."""

    host: str
    port: int


@contextlib.contextmanager
def delayed(node: Node, delay_ms: float) -> Iterator[Link]:
    """Run a relay in front of a node."""
    command = [sys.executable, "-m", "bench.relay", node.host, str(node.port), str(delay_ms)]
    root = Path(__file__).parents[1]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        try:
            port = process.stdout.readline()
            if not port:
                raise Failed("the relay did not start")
            yield Link("127.0.0.1", int(port))
        finally:
            process.kill()


class HeldBack(asyncio.Protocol):
    """One end of a connection: what it receives goes to the other end once it has been held long enough."""

    def __init__(self, delay_seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._delay_seconds = delay_seconds
        self._held: deque[tuple[float, bytes]] = deque()  # the end of the stream is an empty piece
        self._held_bytes = 0
        self._own: asyncio.Transport | None = None
        self._other: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._own = transport

    def join(self, other: "HeldBack") -> None:
        """Make two ends one connection."""
        self._other, other._other = other._own, self._own

    def data_received(self, data: bytes) -> None:
        self._hold(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._hold(b"")

    def _hold(self, piece: bytes) -> None:
        assert self._own is not None
        self._held.append((self._loop.time() + self._delay_seconds, piece))
        self._held_bytes += len(piece)
        if self._held_bytes > HELD_BYTES_MAX:
            self._own.pause_reading()
        if len(self._held) == 1:  # else a timer runs; one at a time keeps the order
            self._loop.call_later(self._delay_seconds, self._release)

    def _release(self) -> None:
        assert self._own is not None
        assert self._other is not None
        while self._held and self._held[0][0] <= self._loop.time():
            _, piece = self._held.popleft()
            self._held_bytes -= len(piece)
            if piece:
                self._other.write(piece)
            else:
                self._other.close()
        if self._held_bytes <= HELD_BYTES_MAX and not self._own.is_closing():
            self._own.resume_reading()
        if self._held:
            self._loop.call_at(self._held[0][0], self._release)


async def relay(host: str, port: int, delay_ms: float) -> None:
    """Serve until the process is ended."""
    loop = asyncio.get_running_loop()
    joining: set[asyncio.Task[None]] = set()

    class Accepted(HeldBack):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            assert isinstance(transport, asyncio.Transport)
            transport.pause_reading()
            task = loop.create_task(self._reach(transport))
            joining.add(task)
            task.add_done_callback(joining.discard)

        async def _reach(self, transport: asyncio.Transport) -> None:
            _, other = await loop.create_connection(lambda: HeldBack(delay_ms / 1000), host, port)
            self.join(other)
            transport.resume_reading()

    server = await loop.create_server(lambda: Accepted(delay_ms / 1000), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(relay(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
