"""TLS for connections of any kind: a stream behind the Socket port, encrypted.

The encryption itself works on memory (`ssl.MemoryBIO`), so it needs no sockets of its own. Decrypted bytes may lie
ready when the stream has none to receive, and encrypted ones may be unsent when all were taken: both are looked after
here, so that whoever uses the port need not know.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, Final, cast

from riverlog.model.ids import Address
from riverlog.model.ports import Buffer, Connecting, File, Socket

_RECEIVE_BYTES: Final = 256 * 1024
_SEND_BYTES_MAX: Final = 64 * 1024


class TlsNetwork:
    """The Connecting port, encrypted."""

    def __init__(self, network: Connecting, context: ssl.SSLContext) -> None:
        self._network = network
        self._context = context

    async def connect(self, host: str, port: int) -> Socket:
        stream = TlsSocket(await self._network.connect(host, port), self._context, host)
        try:
            await stream.shake_hands()
        except BaseException:
            stream.close()
            raise
        return stream


class TlsSocket:
    """The Socket port over another."""

    def __init__(self, stream: Socket, context: ssl.SSLContext, server_name: str | None) -> None:
        """Take a stream that nobody has used yet; without a server's name, this is the server."""
        self._stream = stream
        self._arrived = ssl.MemoryBIO()
        self._leaving = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._arrived, self._leaving, server_side=server_name is None, server_hostname=server_name
        )
        self._read_into: Callable[[int, memoryview], int] = cast(Any, self._tls.read)  # with a buffer it gives a number
        self._room = memoryview(bytearray(_RECEIVE_BYTES))
        self._unsent = memoryview(b"")
        self._readable: Callable[[], None] | None = None
        self._writable: Callable[[], None] | None = None
        self._again: asyncio.Handle | None = None
        self._closed = False

    @property
    def local(self) -> Address:
        return self._stream.local

    @property
    def peer(self) -> Address:
        return self._stream.peer

    async def shake_hands(self) -> None:
        """Agree with the server; OSError where that fails, and nobody is waited for but the server."""
        agreed = False
        while not agreed:
            try:
                self._tls.do_handshake()
                agreed = True
            except ssl.SSLWantReadError:
                pass
            while not self._flush():
                await self._wait(self._stream.on_writable)
            if not agreed:
                await self._wait(self._stream.on_readable)
                if not self._receive():
                    raise ConnectionResetError("the server closed the connection instead of agreeing on TLS")

    def receive_into(self, buffer: memoryview) -> int:
        """Fill the buffer as far as there are bytes: who gets less than asked for comes again when there are more."""
        filled = 0
        while filled < len(buffer):
            try:
                count = self._read_into(len(buffer) - filled, buffer[filled:])
            except ssl.SSLWantReadError:
                try:
                    if self._receive():
                        continue
                except BlockingIOError:
                    if filled:
                        break
                    raise
                return filled  # the end, or the last before it
            except ssl.SSLZeroReturnError:
                return filled
            if count == 0:
                return filled
            filled += count
        self._flush_and_watch()  # what reading made it say: an answer to the server's wish for new keys
        return filled

    def send(self, buffer: Buffer, *, more: bool = False) -> int:
        """Encrypt and send; what was taken and not sent is sent before the next."""
        if not self._flush():
            raise BlockingIOError
        count = self._tls.write(memoryview(buffer)[:_SEND_BYTES_MAX])
        self._flush_and_watch()
        return count

    def send_file(self, file: File, position: int, count: int) -> int:
        """Send bytes of a file; they are read for it, since they have to be encrypted."""
        return self.send(file.read(position, min(count, _SEND_BYTES_MAX)))

    def on_readable(self, callback: Callable[[], None] | None) -> None:
        self._readable = callback
        self._stream.on_readable(None if callback is None else self._read)
        if callback is not None:
            self._come_again()  # the handshake may have brought more than itself

    def on_writable(self, callback: Callable[[], None] | None) -> None:
        self._writable = callback
        self._watch()

    def expect(self, count: int) -> None:
        """Do nothing: some of those bytes may have come already, encrypted."""

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._again is not None:
            self._again.cancel()
        self._readable = self._writable = None
        self._stream.close()

    def _read(self) -> None:
        self._again = None
        if self._readable is not None:
            self._readable()
            self._come_again()

    def _come_again(self) -> None:
        """Have what is here read in the next turn, though nothing more may arrive."""
        waits = self._tls.pending() or self._arrived.pending
        if waits and self._readable is not None and self._again is None:
            self._again = asyncio.get_running_loop().call_soon(self._read)

    def _write(self) -> None:
        if self._flush() and self._writable is not None:
            self._writable()
        self._watch()

    def _watch(self) -> None:
        if not self._closed:
            wanted = self._writable is not None or bool(self._unsent)
            self._stream.on_writable(self._write if wanted else None)

    def _flush_and_watch(self) -> None:
        if not self._flush():
            self._watch()

    def _flush(self) -> bool:
        """Send what is encrypted; tell whether all of it is gone."""
        while self._unsent or self._leaving.pending:
            if not self._unsent:
                self._unsent = memoryview(self._leaving.read())
            try:
                self._unsent = self._unsent[self._stream.send(self._unsent) :]
            except BlockingIOError:
                return False
        return True

    def _receive(self) -> bool:
        """Take what has arrived, encrypted; False at the end of the stream."""
        count = self._stream.receive_into(self._room)
        if count:
            self._arrived.write(self._room[:count])
        else:
            self._arrived.write_eof()
        return count > 0

    async def _wait(self, watch: Callable[[Callable[[], None] | None], None]) -> None:
        ready = asyncio.Event()
        watch(ready.set)
        try:
            await ready.wait()
        finally:
            watch(None)
