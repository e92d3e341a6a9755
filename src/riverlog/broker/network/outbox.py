"""Bytes on their way to one peer: queued in order, small ones joined, sent as the socket takes them.

Ranges of files are sent by the system without copying; one that is not in memory is read beside the loop first.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from riverlog.broker.limits import SEND_BYTES_PER_TURN_MAX
from riverlog.broker.requests.context import Parts
from riverlog.broker.requests.memory import RequestMemory
from riverlog.model.ports import Buffer, FileRange, Socket
from riverlog.partitions.cold_reads import ColdReads

_JOIN_BYTES_MAX: Final = 128 * 1024  # copying this much costs less than another call to the system


class Outbox:
    """What is to be sent on one socket."""

    __slots__ = (
        "_cold_reads", "_counted_bytes", "_memory", "_socket", "_tail", "_unblocked", "blocked", "parts",
        "unsent_bytes",
    )  # fmt: skip

    def __init__(
        self, socket: Socket, memory: RequestMemory, cold_reads: ColdReads, unblocked: Callable[[], None]
    ) -> None:
        """Send on this socket; `unblocked` is called when sending can go on."""
        self._socket = socket
        self._memory = memory
        self._cold_reads = cold_reads
        self._unblocked = unblocked
        self.parts: deque[Buffer | FileRange] = deque()
        """In the order in which they are sent."""
        self._tail: bytearray | None = None  # the last part while small answers are still joined to it
        self._counted_bytes = 0  # of answers, counted for the node
        self.unsent_bytes = 0
        """Memory held by what is to be sent; ranges of files hold none."""
        self.blocked = False
        """The socket takes no more bytes, or the disk has to be read, until `unblocked` is called."""

    def put(self, parts: Parts) -> None:
        """Queue an answer's bytes; small ones are joined: a copy is cheaper than another call to the system."""
        for part in parts:
            if isinstance(part, FileRange):
                self.parts.append(part)
                self._tail = None
                continue
            if self._tail is not None and len(self._tail) + len(part) <= _JOIN_BYTES_MAX:
                self._tail += part
            else:
                self._tail = bytearray(part) if len(part) < _JOIN_BYTES_MAX else None
                self.parts.append(part if self._tail is None else self._tail)
            self.unsent_bytes += len(part)

    def send(self) -> None:
        """Send until all is sent, the socket is full, or others deserve a turn; OSError where the peer is gone."""
        self._tail = None
        budget = SEND_BYTES_PER_TURN_MAX
        try:
            while self.parts and not self.blocked:
                first = self.parts[0]
                budget -= self._send_range(first) if isinstance(first, FileRange) else self._send_buffer(first)
                if budget <= 0 and self.parts:
                    self._wait_for_socket()
        except (BlockingIOError, InterruptedError):
            self._wait_for_socket()

    def clear(self) -> None:
        """Forget what was not sent, and who was to be called: the connection has ended."""
        self.parts.clear()
        self._tail = None
        self._unblocked = _nobody
        self._count(0)

    def _send_buffer(self, first: Buffer) -> int:
        sent = self._socket.send(first, more=len(self.parts) > 1)
        self.unsent_bytes -= sent
        if sent == len(first):
            self.parts.popleft()
        else:
            self.parts[0] = memoryview(first)[sent:]
        return sent

    def _send_range(self, first: FileRange) -> int:
        file, position, size = first
        part = FileRange(file, position, min(size, SEND_BYTES_PER_TURN_MAX))
        if not file.is_cached(position, part.size) and (until := self._cold_reads.begin(part)) is not None:
            self._block()
            until.add_done_callback(lambda _read: self._unblock())
            return 0
        sent = self._socket.send_file(*part)
        if sent == 0:
            raise OSError(f"{file.path} ends before the range that was promised")
        if sent == size:
            self.parts.popleft()
        else:
            self.parts[0] = FileRange(file, position + sent, size - sent)
        return sent

    def _wait_for_socket(self) -> None:
        self._block()
        self._socket.on_writable(self._writable)

    def _writable(self) -> None:
        self._socket.on_writable(None)
        self._unblock()

    def _block(self) -> None:
        self.blocked = True
        self._count(self.unsent_bytes)

    def _unblock(self) -> None:
        self.blocked = False
        self._count(0)
        self._unblocked()

    def _count(self, count: int) -> None:
        """Count, for the node, the bytes of answers that the peer has not taken."""
        self._memory.answer_bytes += count - self._counted_bytes
        self._counted_bytes = count


def _nobody() -> None:
    """Stand in for a connection that has ended."""
