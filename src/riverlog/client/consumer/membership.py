"""A member's place in its group, between two parties: a task that talks to the coordinator, and the reader.

The task never takes a partition from the reader. It says what the reader should have (`target`), or that all of it is
lost, and the reader makes that true when it is not at work on records: when it polls. So whatever the reader has been
given is dealt with before its offsets are committed and its partitions go to others.

    task:    joins, beats, learns a target  ---->  reader:  commits, lets go, takes over
                                            <----  `applied`
"""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from riverlog.client.consumer.commits import Identity
from riverlog.client.errors import KafkaError
from riverlog.client.network.cluster import Cluster
from riverlog.client.network.coordinator import GroupCoordinator
from riverlog.model.ids import TopicPartition

Partitions = frozenset[TopicPartition]
NOTHING: Partitions = frozenset()


@dataclass(frozen=True, slots=True)
class GroupRules:
    """How a consumer wants to be a member."""

    group: str
    instance_id: str | None
    assignor: str | None
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int


@dataclass(frozen=True, slots=True)
class Interest:
    """What a member subscribes to: topics by name, or all whose whole name matches a pattern."""

    topics: frozenset[str] = frozenset()
    pattern: str | None = None

    def among(self, cluster: Cluster) -> frozenset[str]:
        """Return the names of the topics that are meant, as far as the cluster has them."""
        if self.pattern is None:
            return self.topics
        matches = re.compile(self.pattern).fullmatch
        return frozenset(name for name, topic in cluster.topics.items() if not topic.is_internal and matches(name))


class GroupMembership(ABC):
    """One membership, from the first join to the leave. `run` it beside the reader."""

    def __init__(
        self,
        cluster: Cluster,
        coordinator: GroupCoordinator,
        rules: GroupRules,
        interest: Interest,
        signal: Callable[[], None],
    ) -> None:
        self.target: Partitions | None = None
        """What the reader should have; None while that is what it has."""
        self.lost = False
        """The group has gone on: whatever the reader has is others' now."""
        self.problem: KafkaError | None = None
        """Why the member cannot join; it tries again once the reader has been told."""
        self.owned: Partitions = NOTHING
        """What the reader has, as it said itself."""
        self.assigned = False
        """The coordinator has assigned this member something, be it nothing; False while it joins."""
        self.failing_since: float | None = None
        """Since when the coordinator has been asked in vain, by the loop's clock; None once it answers."""
        self.last_problem: KafkaError | None = None
        """Why it was in vain."""
        self.reader_waits = False
        self.polled_at = asyncio.get_running_loop().time()
        self._cluster = cluster
        self._coordinator = coordinator
        self._rules = rules
        self._interest = interest
        self._signal = signal
        self._woken = asyncio.Event()
        self._applying = False

    @property
    @abstractmethod
    def identity(self) -> Identity:
        """Return who commits are from."""

    @abstractmethod
    async def leave(self) -> None:
        """Leave the group, so that others need not wait for the end of the session."""

    async def run(self) -> None:
        """Be a member until cancelled; what cannot be mended by trying again is left in `problem`."""
        attempt = 0
        while True:
            try:
                await self._take_part()
                attempt = 0
            except KafkaError as problem:
                attempt += 1
                if problem.retriable:
                    self._asked_in_vain(problem)
                else:
                    self.problem = problem
                    self._signal()
                    await self._until(lambda: self.problem is None)
                await asyncio.sleep(self._cluster.backoff(attempt))

    @property
    def wants_reader(self) -> bool:
        """Return whether the reader should look here before it goes on."""
        return self.lost or self.target is not None or self.problem is not None

    @property
    def is_settled(self) -> bool:
        """Return whether the reader has what the coordinator assigned last, be it nothing."""
        return self.assigned and not self.wants_reader and not self._applying

    def begin(self) -> Partitions | None:
        """Take the target in hand: until `applied` it will not change."""
        target, self.target = self.target, None
        self._applying = target is not None
        return target

    def applied(self, owned: Partitions, *, target: Partitions | None = None) -> None:
        """Report what the reader has now; where that is not the target that was taken in hand, it is offered again."""
        self.owned = owned
        self._applying = False
        if target is not None and self.target is None and not self.lost:
            self._offer(target)
        self._woken.set()

    def told(self) -> None:
        """Take note that the reader knows of the problem, or of the loss."""
        self.problem = None
        self.lost = False
        self._woken.set()

    def polled(self) -> None:
        """Take note that the reader is alive."""
        self.polled_at = asyncio.get_running_loop().time()

    def interest_changed(self, interest: Interest) -> None:
        """Subscribe to something else from now on."""
        self._interest = interest
        self._woken.set()

    @abstractmethod
    async def _take_part(self) -> None:
        """Join where need be, and stay for as long as all goes well."""

    def _asked_in_vain(self, problem: KafkaError) -> None:
        self.failing_since = self.failing_since or asyncio.get_running_loop().time()
        self.last_problem = problem

    def _answered(self) -> None:
        self.failing_since = self.last_problem = None

    def _offer(self, target: Partitions) -> None:
        """Bring the reader to have this."""
        self.target = None if target == self.owned else target
        if self.target is not None:
            self._signal()

    def _lose(self) -> None:
        """Report to the reader that what it has is no longer its own."""
        self.target = None
        self.lost = self.lost or bool(self.owned) or self._applying
        self.owned = NOTHING
        self._signal()

    @property
    def _overdue(self) -> bool:
        """Return whether the reader has been at work on its last portion for too long."""
        age = asyncio.get_running_loop().time() - self.polled_at
        return not self.reader_waits and age * 1000 > self._rules.max_poll_interval_ms

    async def _step_aside(self) -> None:
        """Leave, and wait until the reader comes back."""
        await self.leave()
        self._lose()
        polled_at = self.polled_at
        await self._until(lambda: self.polled_at > polled_at or self.reader_waits)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._woken.clear()
            await self._woken.wait()

    async def _pause(self, seconds: float) -> None:
        """Wait for a while, or until something has changed."""
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            pass
        self._woken.clear()
