"""The controllers of a cluster, asked on their own listener: also where no broker runs."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Self, TypeVar

from riverlog.client.admin.quorum import QuorumCalls
from riverlog.client.arguments import checked_int32, checked_text
from riverlog.client.errors import KafkaError, Unreachable, check
from riverlog.client.lifetime import Startable
from riverlog.client.network.connection import Connection
from riverlog.client.ports import Ports, real_ports
from riverlog.model.addresses import parse_addresses
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_NODE, Address, NodeId
from riverlog.wire.messages.describe_cluster import (
    ENDPOINT_CONTROLLERS,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

T = TypeVar("T")

_CONNECT_SECONDS: Final = 10.0
_ATTEMPTS_MAX: Final = 5


class ControllerAdmin(QuorumCalls, Startable):
    """Asks the active controller. Use it as an async context manager."""

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        timeout_ms: int = 30_000,
        client_id: str = "riverlog-admin",
        retry_backoff_ms: int = 100,
        ports: Ports | None = None,
    ) -> None:
        """Describe the client; `bootstrap` are addresses of controllers, as host:port."""
        self._bootstrap = parse_addresses(bootstrap)
        self._timeout_ms = checked_int32("timeout_ms", timeout_ms)
        self._client_id = checked_text("client_id", client_id)
        self._backoff_seconds = checked_int32("retry_backoff_ms", retry_backoff_ms) / 1000
        self._network = (ports or real_ports()).network
        self._connections: dict[Address, Connection] = {}
        self._asker = self
        self.cluster_id = ""
        """Known once a controller has answered."""

    async def start(self) -> Self:
        """Reach the active controller; Unreachable where no controller answers."""
        try:
            await self._until_done(self._active)
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    async def ask_any(self, message: object, *, seconds: float | None = None) -> Any:
        """Ask the active controller."""
        return await (await self._active()).request(message, seconds=seconds)

    async def _active(self) -> Connection:
        """Find out from any controller who leads, and return the connection to that one."""
        reasons = []
        for address in self._bootstrap:
            try:
                connection = await self._connection(address)
                request = DescribeClusterRequest(endpoint_type=ENDPOINT_CONTROLLERS)
                response: DescribeClusterResponse = await connection.request(request)
            except Unreachable as error:
                reasons.append(error.message)
                continue
            check(response.error_code, str(address), response.error_message)
            self.cluster_id = response.cluster_id
            leader = NodeId(response.controller_id)
            known = {NodeId(each.broker_id): Address(each.host, each.port) for each in response.brokers}
            if leader == NO_NODE or leader not in known:
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{address} knows no active controller")
            return await self._connection(known[leader])
        raise Unreachable.all_of(reasons)

    async def _connection(self, address: Address) -> Connection:
        found = self._connections.get(address)
        if found is None or found.closed:
            found = self._connections[address] = await Connection.open(
                self._network,
                address,
                client_id=self._client_id,
                connect_seconds=_CONNECT_SECONDS,
                request_seconds=self._timeout_ms / 1000,
            )
        return found

    async def _until_done(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Try again where nobody leads for the moment, or another one does."""
        for tries in range(1, _ATTEMPTS_MAX + 1):
            try:
                return await attempt()
            except KafkaError as error:
                if not error.retriable or tries == _ATTEMPTS_MAX:
                    raise
            await asyncio.sleep(self._backoff_seconds * tries)
        raise AssertionError("the last attempt returns or raises")
