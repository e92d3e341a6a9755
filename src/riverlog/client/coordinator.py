"""A group's coordinator as a client sees it: found when it is needed, and found again when it has moved."""

import asyncio
from itertools import count
from typing import Any, Final

from riverlog.client.cluster import Broker, Cluster
from riverlog.client.connection import Connection
from riverlog.client.errors import KafkaError, TimedOut, failure
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId
from riverlog.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

COORDINATOR_LANE: Final = "coordinator"
JOIN_LANE: Final = "join"
"""Joining waits for the other members, and answers come in order: nothing else may stand behind it."""

MOVED: Final = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)


class GroupCoordinator:
    """The broker that looks after one group."""

    def __init__(self, cluster: Cluster, group: str) -> None:
        self.group = group
        self._cluster = cluster
        self._node: NodeId | None = None

    async def ask(self, message: object, *, lane: str = COORDINATOR_LANE, seconds: float | None = None) -> Any:
        """Ask the coordinator; a failure of the connection makes the next call look for it again."""
        try:
            return await (await self._connection(lane)).request(message, seconds=seconds)
        except KafkaError:
            self._node = None
            raise

    def moved(self) -> None:
        """Look for the coordinator again before the next call."""
        self._node = None

    async def _connection(self, lane: str) -> Connection:
        if self._node is None:
            self._node = await self._find()
        return await self._cluster.connection(self._node, lane)

    async def _find(self) -> NodeId:
        deadline = asyncio.get_running_loop().time() + self._cluster.request_seconds
        request = FindCoordinatorRequest(key=self.group, coordinator_keys=[self.group])
        for attempt in count(1):
            response: FindCoordinatorResponse = await self._cluster.ask_any(request)
            found = response.coordinators[0] if response.coordinators else _single(response)
            if found.error_code == ErrorCode.NONE:
                node = NodeId(found.node_id)
                self._cluster.brokers.setdefault(node, Broker(node, found.host, found.port))
                return node
            problem = failure(found.error_code, f"the coordinator of group {self.group!r}", found.error_message)
            if not problem.retriable:
                raise problem
            pause = self._cluster.backoff(attempt)
            if asyncio.get_running_loop().time() + pause > deadline:
                raise TimedOut(problem.message)
            await asyncio.sleep(pause)
        raise AssertionError("unreachable")


def _single(response: FindCoordinatorResponse) -> Coordinator:
    """Read an answer of an older broker, which speaks of one coordinator only."""
    return Coordinator(
        node_id=response.node_id,
        host=response.host,
        port=response.port,
        error_code=response.error_code,
        error_message=response.error_message,
    )
