"""The coordinator of a group or of a transactional id as a client sees it.

It is found when it is needed, and found again when it has moved.
"""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, ClassVar, Final, TypeVar

from riverlog.client.errors import Closed, KafkaError, ProducerFenced, TimedOut, error_code, failure
from riverlog.client.network.cluster import Broker, Cluster
from riverlog.client.network.connection import Connection
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId
from riverlog.wire.messages.find_coordinator import Coordinator as FoundCoordinator
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

T = TypeVar("T")

COORDINATOR_LANE: Final = "coordinator"
JOIN_LANE: Final = "join"
"""Joining waits for the other members, and answers come in order: nothing else may stand behind it."""

CONCURRENT_PAUSE_SECONDS: Final = 0.02
"""How long to wait for the end of the transaction before."""

MOVED: Final = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)
FENCED: Final = frozenset(
    {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
)


class Coordinator:
    """The broker that looks after one name."""

    KEY_TYPE: ClassVar[int]
    NOUN: ClassVar[str]

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.name = name
        self._cluster = cluster
        self._node: NodeId | None = None

    async def ask(
        self,
        message: object,
        *,
        lane: str = COORDINATOR_LANE,
        seconds: float | None = None,
        version_max: int | None = None,
    ) -> Any:
        """Ask the coordinator; a failure of the connection makes the next call look for it again."""
        try:
            return await (await self.connection(lane)).request(message, seconds=seconds, version_max=version_max)
        except KafkaError:
            self._node = None
            raise

    def moved(self) -> None:
        """Look for the coordinator again before the next call."""
        self._node = None

    async def connection(self, lane: str = COORDINATOR_LANE) -> Connection:
        """Return a connection to it, looking for it and opening one if need be."""
        if self._node is None:
            self._node = await self._find()
        return await self._cluster.connection(self._node, lane)

    async def _find(self) -> NodeId:
        deadline = asyncio.get_running_loop().time() + self._cluster.request_seconds
        request = FindCoordinatorRequest(key=self.name, key_type=self.KEY_TYPE, coordinator_keys=[self.name])
        for attempt in count(1):
            response: FindCoordinatorResponse = await self._cluster.ask_any(request)
            found = response.coordinators[0] if response.coordinators else _single(response)
            if found.error_code == ErrorCode.NONE:
                node = NodeId(found.node_id)
                self._cluster.brokers.setdefault(node, Broker(node, found.host, found.port))
                return node
            problem = failure(found.error_code, f"the coordinator of {self.NOUN} {self.name!r}", found.error_message)
            if not problem.retriable:
                raise problem
            pause = self._cluster.backoff(attempt)
            if asyncio.get_running_loop().time() + pause > deadline:
                raise TimedOut(problem.message)
            self._cluster.asked_in_vain(problem)
            await asyncio.sleep(pause)
        raise AssertionError("unreachable")


class GroupCoordinator(Coordinator):
    """The broker that looks after one group."""

    KEY_TYPE = 0
    NOUN = "group"

    @property
    def group(self) -> str:
        return self.name


class TransactionCoordinator(Coordinator):
    """The broker that looks after one transactional id."""

    KEY_TYPE = 1
    NOUN = "transactional id"

    def check(
        self, number: int, what: str, message: str | None = None, *, fenced: frozenset[ErrorCode] = FENCED
    ) -> None:
        """Raise what a code means; ProducerFenced where another has taken over the id."""
        code = error_code(number)
        if code is ErrorCode.NONE:
            return
        if code in MOVED:
            self.moved()
        if code in fenced:
            raise ProducerFenced(self.name)
        raise failure(number, f"{what} of the transactional id {self.name!r}", message)


async def asking_again(cluster: Cluster, ask: Callable[[], Awaitable[T]], *, seconds: float | None = None) -> T:
    """Ask until there is an answer, or a refusal that will stay, or the time is up."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + (cluster.request_seconds if seconds is None else seconds)
    for attempt in count(1):
        try:
            answer = await ask()
        except KafkaError as problem:
            concurrent = problem.code is ErrorCode.CONCURRENT_TRANSACTIONS  # which will not take long
            pause = CONCURRENT_PAUSE_SECONDS if concurrent else cluster.backoff(attempt)
            if not problem.retriable or isinstance(problem, Closed) or loop.time() + pause > deadline:
                raise
            cluster.asked_in_vain(problem)
        else:
            cluster.answered()
            return answer
        await asyncio.sleep(pause)
    raise AssertionError("unreachable")


def _single(response: FindCoordinatorResponse) -> FoundCoordinator:
    """Read an answer of an older broker, which speaks of one coordinator only."""
    return FoundCoordinator(
        node_id=response.node_id,
        host=response.host,
        port=response.port,
        error_code=response.error_code,
        error_message=response.error_message,
    )
