"""The door: listens, lets connections in up to the limit, sends the idle ones away, and stops in good order."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from riverlog.broker.limits import ACCEPT_PAUSE_LINES_SECONDS, IDLE_SWEEP_SECONDS
from riverlog.broker.network.connection import Connection
from riverlog.broker.requests.context import Client
from riverlog.broker.requests.dispatch import Dispatcher
from riverlog.broker.requests.memory import RequestMemory
from riverlog.model.access import ANONYMOUS, Principal
from riverlog.model.endpoints import Endpoint
from riverlog.model.ids import Address
from riverlog.model.ports import Clock, Listener, Network, Socket
from riverlog.model.settings import NodeSettings
from riverlog.observe.logging import get_logger
from riverlog.observe.stats import CloseReason, NodeStats
from riverlog.partitions.cold_reads import ColdReads
from riverlog.partitions.turn import Turn

_WORTH_A_LINE: Final = {CloseReason.MALFORMED, CloseReason.UNANSWERED, CloseReason.SLOW}


class Server:
    """All client connections of one node. Settings are asked for each time: some change while the node runs."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        settings: Callable[[], NodeSettings],
        network: Network,
        clock: Clock,
        stats: NodeStats,
        *,
        turn: Turn,
        cold_reads: ColdReads,
        connections_max: int,
        failed: Callable[[BaseException], None],
        ended: Callable[[Client, CloseReason], None] = lambda _client, _reason: None,
    ) -> None:
        """Build a server. `failed` hears of mistakes of our own, and `ended` of each connection's end."""
        self._dispatcher = dispatcher
        self._turn = turn
        self._cold_reads = cold_reads
        self._settings = settings
        self._network = network
        self._clock = clock
        self._stats = stats.connections
        self._connections_max = connections_max  # as far as there are descriptors, whatever the settings allow
        self._failed = failed
        self._ended = ended
        self._memory = RequestMemory(
            settings().queued_max_request_bytes,
            window_bytes_max=settings().connection_window_bytes,
            stats=stats.connections,
            later=lambda seconds, look: asyncio.get_running_loop().call_later(seconds, look),
        )
        self._listeners: list[Listener] = []
        self._connections: dict[Connection, None] = {}  # in order of arrival
        self._empty = asyncio.Event()
        self._serving = False
        self._next_line_at = 0.0
        self._log = get_logger("riverlog.server")

    def listen(self, endpoint: Endpoint) -> Address:
        """Open one listener and give the address it got; a busy port is an OSError."""
        accepted = partial(self._let_in, endpoint.listener)
        listener = self._network.listen(endpoint.host, endpoint.port, accepted, self._held_up)
        self._listeners.append(listener)
        return listener.address

    def serve(self) -> None:
        """Begin to answer; whoever connected before has waited for this."""
        self._serving = True
        for connection in tuple(self._connections):
            connection.start()

    async def run(self) -> None:
        """Look after idle connections, for ever."""
        while True:
            await asyncio.sleep(IDLE_SWEEP_SECONDS)
            self._sweep()

    async def stop(self) -> None:
        """Accept and read no more, give answers under way a moment, then close everything."""
        for listener in self._listeners:
            listener.close()
        for connection in tuple(self._connections):
            connection.finish(CloseReason.STOPPING)
        if self._connections:
            await self._empty.wait()  # bounded: each connection closes itself after CLOSING_SECONDS_MAX at the latest

    def _let_in(self, listener: str, socket: Socket) -> None:
        if len(self._connections) >= min(self._settings().max_connections, self._connections_max):
            self._stats.refused += 1
            self._log.warning("connection refused", peer=str(socket.peer), open=len(self._connections))
            socket.close()
            return
        connection = Connection(
            socket,
            Client(Principal(ANONYMOUS, socket.peer.host), listener, self._memory, port=socket.peer.port),
            self._dispatcher,
            self._clock,
            self._turn,
            self._cold_reads,
            frame_bytes_max=self._settings().socket_request_max_bytes,
            closed=self._forget,
            failed=self._failed,
        )
        self._connections[connection] = None
        self._empty.clear()
        self._stats.opened()
        if self._serving:
            connection.start()

    def _held_up(self, error: OSError) -> None:
        """Count that nobody can be accepted for a moment."""
        self._stats.accepts_held_up += 1
        now = self._clock.monotonic()
        if now >= self._next_line_at:
            self._next_line_at = now + ACCEPT_PAUSE_LINES_SECONDS
            self._log.error("no connection can be accepted", error=str(error), open=len(self._connections))

    def _forget(self, connection: Connection, reason: CloseReason, detail: str) -> None:
        del self._connections[connection]
        if not self._connections:
            self._empty.set()
        self._stats.ended(reason)
        self._ended(connection.client, reason)
        if reason in _WORTH_A_LINE:
            peer = connection.client.principal.host
            self._log.warning("connection closed", peer=peer, reason=reason.value, detail=detail)

    def _sweep(self) -> None:
        now = self._clock.monotonic()
        idle_seconds_max = self._settings().connections_max_idle_ms / 1000
        for connection in tuple(self._connections):
            try:
                self._look_after(connection, now - connection.last_heard, idle_seconds_max)
            except Exception as error:
                connection.fail(error)

    def _look_after(self, connection: Connection, quiet_seconds: float, idle_seconds_max: float) -> None:
        if quiet_seconds > idle_seconds_max:
            connection.close(CloseReason.IDLE)
        elif connection.keeps_others_waiting():
            connection.close(CloseReason.SLOW, "others waited for the memory of a request that did not arrive")
        elif quiet_seconds > IDLE_SWEEP_SECONDS:
            connection.rest()
            connection.look_again()
