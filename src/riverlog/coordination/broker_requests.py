"""Requests to other brokers: found by their registration, in lanes of their own, so that no client holds them up.

A broker that could not be reached is left alone for a moment, longer each time. Nothing is sent again: whoever asks
knows what may be repeated.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

from riverlog.controller.peers import Lane, Peers
from riverlog.controller.quorum_ports import NoResponse
from riverlog.controller.view import MetadataView
from riverlog.coordination.limits import BROKER_RETRY_SECONDS_MAX, BROKER_RETRY_SECONDS_MIN
from riverlog.model.ids import Address, NodeId
from riverlog.model.ports import Clock
from riverlog.observe.containment import contained

Item = TypeVar("Item")


class BrokerRequests:
    """Sends requests to brokers by their numbers."""

    def __init__(self, peers: Peers, metadata: MetadataView, clock: Clock, listener: str = "") -> None:
        """Reach brokers on the listener of this name; without one on the first that they have."""
        self._peers = peers
        self._metadata = metadata
        self._clock = clock
        self._listener = listener
        self._rests: dict[Address, tuple[float, float]] = {}  # until when, and for how long

    async def ask(self, node_id: NodeId, request: object, lane: Lane, *, seconds: float) -> Any:
        """Return the response of a broker; NoResponse where there is none in time."""
        address = self._address(node_id)
        rests_until, rest = self._rests.get(address, (0.0, 0.0))
        if self._clock.monotonic() < rests_until:
            raise NoResponse(f"broker {node_id} at {address} could not be reached a moment ago")
        try:
            connection = await self._peers.connection(address, lane)
        except NoResponse:
            rest = min(max(2 * rest, BROKER_RETRY_SECONDS_MIN), BROKER_RETRY_SECONDS_MAX)
            self._rests[address] = (self._clock.monotonic() + rest, rest)
            raise
        self._rests.pop(address, None)
        return await self._peers.send(connection, request, seconds)

    async def close(self) -> None:
        """Close all connections; whoever waits is told that no response will come."""
        await self._peers.close()

    def _address(self, node_id: NodeId) -> Address:
        broker = self._metadata.image.brokers.get(node_id)
        endpoints = () if broker is None else broker.endpoints
        found = next((each for each in endpoints if not self._listener or each.listener == self._listener), None)
        if found is None:
            raise NoResponse(f"no address of broker {node_id} is known on the listener for brokers")
        return found.address


class RequestQueue(Generic[Item]):
    """What is to be sent to one broker: one request at a time, each with all that has waited for it.

    So a broker that answers slowly gets few large requests. `send` returns what did not fit into its request; whoever
    put something in bounds how much waits by waiting for the answer.
    """

    def __init__(self, send: Callable[[Sequence[Item]], Awaitable[Sequence[Item]]]) -> None:
        self._send = send
        self._waiting: deque[Item] = deque()
        self._sending: asyncio.Task[None] | None = None

    def put(self, item: Item) -> None:
        """Send something with the next request, a moment later."""
        self._waiting.append(item)
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        """Send nothing more."""
        self._waiting.clear()
        if self._sending is not None:
            self._sending.cancel()

    async def _run(self) -> None:
        try:
            while self._waiting:
                batch = tuple(self._waiting)
                self._waiting.clear()
                try:
                    self._waiting.extendleft(reversed(await self._send(batch)))
                except Exception as mistake:  # whoever waits loses patience, and asks again
                    contained("request to another broker", mistake)
        finally:
            self._sending = None
