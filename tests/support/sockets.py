"""A socket for tests: what the peer sends is put in, what was sent to the peer is taken out."""

from collections.abc import Callable

from riverlog.model.ids import Address
from riverlog.model.ports import Buffer, File


class PuppetSocket:
    """The Socket port with a test's hand on the other end. `window` is how many bytes the peer will still take."""

    def __init__(self, window: int = 1 << 30) -> None:
        self.local = Address("127.0.0.1", 9092)
        self.peer = Address("127.0.0.1", 50_000)
        self.window = window
        self.sent = bytearray()
        self.sends = 0
        self.closed = False
        self.readable: Callable[[], None] | None = None
        self.writable: Callable[[], None] | None = None
        self._arrived = bytearray()
        self._ended = False

    def arrive(self, data: bytes) -> None:
        """Make bytes come in and the connection notice, until it has taken all or stopped reading."""
        self._arrived += data
        while self._arrived and self.readable is not None:
            self.readable()

    def end(self) -> None:
        """Make the peer end its stream."""
        self._ended = True
        if self.readable is not None:
            self.readable()

    def take(self, count: int) -> None:
        """Make the peer take more bytes."""
        self.window += count
        while self.writable is not None and self.window:
            self.writable()
        self.arrive(b"")

    @property
    def unread(self) -> int:
        return len(self._arrived)

    def receive_into(self, buffer: memoryview) -> int:
        if not self._arrived:
            if self._ended:
                return 0
            raise BlockingIOError
        count = min(len(buffer), len(self._arrived))
        buffer[:count] = self._arrived[:count]
        del self._arrived[:count]
        return count

    def send(self, buffer: Buffer, *, more: bool = False) -> int:
        return self._send(bytes(buffer))

    def send_file(self, file: File, position: int, count: int) -> int:
        return self._send(file.read(position, count))

    def _send(self, data: bytes) -> int:
        if not self.window:
            raise BlockingIOError
        self.sends += 1
        taken = data[: self.window]
        self.window -= len(taken)
        self.sent += taken
        return len(taken)

    def on_readable(self, callback: Callable[[], None] | None) -> None:
        self.readable = callback

    def expect(self, count: int) -> None:
        """Do nothing: it may be called as often as bytes come."""

    def on_writable(self, callback: Callable[[], None] | None) -> None:
        self.writable = callback

    def close(self) -> None:
        self.closed = True
        self.readable = self.writable = None
