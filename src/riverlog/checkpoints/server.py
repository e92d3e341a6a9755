"""The port of the checkpoint store. It is bound at the start; all else is loaded when the first client comes.

uvicorn parses HTTP and holds back senders; its own running, signals and log lines are not used. Heads are bounded,
and so are connections. An upload may pause for as long as it likes: Spark keeps one open for a whole task.
"""

import asyncio
import logging
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from riverlog.model.ids import Address
from riverlog.model.limits import CHECKPOINT_CONNECTIONS_MAX, HTTP_IDLE_SECONDS_MAX

if TYPE_CHECKING:
    from uvicorn import Server

    from riverlog.checkpoints.current_store import CurrentStore
    from riverlog.client.network.security import Security
    from riverlog.observe.samples import PipelineSample
    from riverlog.observe.web_guard import WebGuard

_BACKLOG: Final = 128
_STOP_SECONDS_MAX: Final = 1


class CheckpointServer:
    """Serves one cluster's checkpoint store on one address."""

    def __init__(
        self,
        bootstrap: str,
        guard: "WebGuard",
        security: "Security | None" = None,
        *,
        connections_max: int = CHECKPOINT_CONNECTIONS_MAX,
    ) -> None:
        """Take where the cluster is, and how the store shows it who it is."""
        self._bootstrap = bootstrap
        self._guard = guard
        self._security = security
        self._connections_max = connections_max
        self._listening: socket.socket | None = None
        self._starting: asyncio.Task[None] | None = None
        self._server: Server | None = None
        self._stores: CurrentStore | None = None

    def open(self, host: str, port: int) -> Address:
        """Listen and return the address; port 0 takes a free one, a busy port is an OSError."""
        assert self._listening is None
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or "0.0.0.0", port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(_BACKLOG)
            listening.setblocking(False)
        except OSError:
            listening.close()
            raise
        self._listening = listening
        asyncio.get_running_loop().add_reader(listening, self._first_client)
        return Address(*listening.getsockname()[:2])

    def pipelines(self) -> "Iterator[PipelineSample]":
        """Return the queries that have reported, for the metrics; none before the first client of a store."""
        store = None if self._stores is None else self._stores.opened
        return iter(()) if store is None else store.reports.readings()

    async def close(self) -> None:
        """Answer what is under way, then close the port and the store."""
        if self._listening is None:
            return
        listening, self._listening = self._listening, None
        if self._starting is None:
            asyncio.get_running_loop().remove_reader(listening)
        else:
            await asyncio.wait([self._starting])
        if self._server is not None:
            await self._server.shutdown(sockets=[listening])
        if self._stores is not None:
            await self._stores.close()
        listening.close()

    def _first_client(self) -> None:
        assert self._listening is not None
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._listening)
        self._starting = loop.create_task(self._serve(self._listening))

    async def _serve(self, listening: socket.socket) -> None:
        import uvicorn

        from riverlog.checkpoints.current_store import CurrentStore
        from riverlog.checkpoints.files.webhdfs import WebHdfsHandler
        from riverlog.checkpoints.http_protocol import HttpProtocol
        from riverlog.checkpoints.store import store_over
        from riverlog.client.ports import real_ports

        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        ports = real_ports()
        self._stores = CurrentStore(lambda topic_id: store_over(self._bootstrap, ports, self._security, topic_id))
        config = uvicorn.Config(
            WebHdfsHandler(self._stores, self._guard),
            http=HttpProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=int(HTTP_IDLE_SECONDS_MAX),
            timeout_graceful_shutdown=_STOP_SECONDS_MAX,
            limit_concurrency=self._connections_max,
        )
        config.load()
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listening])
        self._server = server
