"""TLS in memory: a network whose servers speak nothing else, with an authority of its own."""

import asyncio
import ssl
from collections.abc import Callable

import trustme

from riverlog.client.network.tls import TlsSocket
from riverlog.model.ports import Socket
from tests.support.network import MemoryListener, MemoryNetwork

AUTHORITY = trustme.CA()


def authority_pem() -> str:
    return AUTHORITY.cert_pem.bytes().decode()


def server_context(*names: str, asks_for_certificate: bool = False) -> ssl.SSLContext:
    """Return what a server of these names needs."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert(*names).configure_cert(context)
    if asks_for_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        AUTHORITY.configure_trust(context)
    return context


class EncryptedNetwork(MemoryNetwork):
    """A network on which whoever listens speaks TLS."""

    def __init__(self, context: ssl.SSLContext, *, window_bytes: int = 256 * 1024) -> None:
        super().__init__(window_bytes=window_bytes)
        self.refused: list[OSError] = []
        """What servers had against those who connected."""
        self._context = context
        self._tasks: set[asyncio.Task[None]] = set()

    def listen(
        self, host: str, port: int, accepted: Callable[[Socket], None], held_up: Callable[[OSError], None] = print
    ) -> MemoryListener:
        def accept(stream: Socket) -> None:
            task = asyncio.get_running_loop().create_task(self._agree(stream, accepted))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return super().listen(host, port, accept, held_up)

    async def _agree(self, stream: Socket, accepted: Callable[[Socket], None]) -> None:
        encrypted = TlsSocket(stream, self._context, None)
        try:
            await encrypted.shake_hands()
        except OSError as error:
            self.refused.append(error)
            encrypted.close()
        else:
            accepted(encrypted)
