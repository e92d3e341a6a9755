"""The coordinators of one internal topic on this node: one machine per partition.

What is coordinated (a group, a transactional id) belongs to the partition that its name hashes to. A partition that was
never written has an empty machine at once; the others are read in the background after a start, and whoever asks
meanwhile is told to ask again. When a partition's log fails, those who wait are told, and it is read again a little
later.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

from riverlog.controller.metadata import MetadataDriver
from riverlog.drivers.limits import (
    COORDINATED_NAMES_PLACED_MAX,
    COORDINATOR_RELOAD_SECONDS_MAX,
    COORDINATOR_RELOAD_SECONDS_MIN,
)
from riverlog.metadata.commands.topics import CreateTopics, NewTopic
from riverlog.metadata.delta import MetadataDelta
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import TopicId, TopicPartition
from riverlog.model.ports import Clock, Random
from riverlog.observe.logging import get_logger
from riverlog.partitions.replicas import Replicas

Command = TypeVar("Command")
Command_contra = TypeVar("Command_contra", contravariant=True)


class Loadable(Protocol[Command_contra]):
    """What all coordinators can do: a PartitionCoordinator, which a node without any does not import."""

    name: TopicPartition
    loaded: bool

    def begin(self) -> bool: ...
    async def load(self) -> None: ...
    def submit(self, command: Command_contra) -> "asyncio.Future[Any]": ...
    def dismiss(self, error: Exception) -> None: ...
    async def close(self) -> None: ...


One = TypeVar("One", bound=Loadable[Any])


class Coordinators(ABC, Generic[Command, One]):
    """Finds the coordinator of a name, and keeps all of them running."""

    TOPIC: str

    def __init__(self, metadata: MetadataDriver, replicas: Replicas, *, clock: Clock, random: Random) -> None:
        self._metadata = metadata
        self._replicas = replicas
        self._clock = clock
        self._random = random
        self._coordinators: dict[int, One] = {}  # of the partitions that were used or written so far
        self._to_load: asyncio.Queue[One] = asyncio.Queue()
        self._away: dict[int, tuple[float, float]] = {}  # by partition: when its log failed last, and for how long
        self._stopping = False
        self._log = get_logger("riverlog.coordinators")

    def start(self) -> None:
        """Follow the metadata."""
        self._metadata.watch(self._follow)

    async def run(self) -> None:
        """Read what was written, one partition after the other, now and when a log has failed."""
        topic = self._metadata.image.topic(self.TOPIC)
        for index in range(0 if topic is None else topic.partition_count):
            if self._replicas.home_of(TopicPartition(self.TOPIC, index)) is not None:
                self._coordinator(index)
        while True:
            await asyncio.sleep(0)  # opening a log may take its time, and there may be many
            coordinator = await self._to_load.get()
            if self._coordinators.get(coordinator.name.partition) is coordinator:
                try:
                    await self._replicas.wait_recovered(coordinator.name)
                    await coordinator.load()
                except Exception as error:  # of the disk, or in what it holds
                    self._failed(coordinator, error)

    def stop_waiting(self) -> None:
        """Tell those who wait for somebody else that this coordinator goes away: the node is about to stop."""
        self._stopping = True
        for coordinator in self._coordinators.values():
            coordinator.dismiss(Refusal(ErrorCode.NOT_COORDINATOR, "the node is stopping"))

    async def close(self) -> None:
        """Wait until all that was decided is committed."""
        for coordinator in self._coordinators.values():
            await coordinator.close()

    def submit(self, name: str, command: Command) -> "asyncio.Future[Any]":
        """Let the coordinator of a name decide now; the reply comes once it rests on committed records.

        Refusal, from the call or the future, where there is no coordinator, or not yet.
        """
        return self.submit_to(self._index_of(name), command)

    def submit_to(self, index: int, command: Command) -> "asyncio.Future[Any]":
        """Let the coordinator of a partition decide now, as above."""
        return self._coordinator(index).submit(command)

    def submit_to_all(self, command: Command) -> "list[asyncio.Future[Any]]":
        """Ask every coordinator that was ever used; Refusal where one of them is not there yet."""
        return [coordinator.submit(command) for coordinator in self._coordinators.values()]

    def partition_of(self, name: str) -> TopicPartition:
        """Give the partition that a name belongs to; Refusal where there are no coordinators."""
        return TopicPartition(self.TOPIC, self._index_of(name))

    def check_loaded(self, index: int) -> None:
        """Begin the coordinator of a partition if nobody has; Refusal where it is still reading its log."""
        if not self._coordinator(index).loaded:
            raise Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "The coordinator is reading its log; try again.")

    def loading(self) -> int:
        """Count the coordinators that are not there yet."""
        return sum(not coordinator.loaded for coordinator in self._coordinators.values())

    async def ensure_topic(self) -> None:
        """Create the topic that coordinators write to, unless it is there; Refusal where that fails."""
        if self._metadata.image.topic(self.TOPIC) is not None:
            return
        (created,) = (await self._metadata.submit(CreateTopics((self._new_topic(),)))).topics
        if created.outcome.code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise Refusal(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, created.outcome.message or "The topic cannot be created."
            )

    def _index_of(self, name: str) -> int:
        topic = self._metadata.image.topic(self.TOPIC)
        if topic is None or self._stopping:
            raise Refusal(ErrorCode.NOT_COORDINATOR, "There are no coordinators here now; ask for one again.")
        return partition_of(name, topic.partition_count)

    @abstractmethod
    def _new_topic(self) -> NewTopic:
        """Describe the topic as it is to be created."""

    def _internal(self, partitions: int, replication_factor: int, configs: Mapping[str, str]) -> NewTopic:
        """Describe a topic that keeps the newest fact about everything, on no more brokers than there are."""
        return NewTopic(
            self.TOPIC,
            TopicId(UUID(int=self._random.getrandbits(128), version=4)),
            partitions,
            min(replication_factor, len(self._metadata.image.brokers)),
            configs={"cleanup.policy": "compact", **configs},
        )

    @abstractmethod
    def _new_coordinator(self, name: TopicPartition) -> One:
        """Build the coordinator of a partition."""

    def _coordinator(self, index: int) -> One:
        """Give the coordinator of a partition, and begin it when it is asked for the first time."""
        coordinator = self._coordinators.get(index)
        if coordinator is None:
            coordinator = self._coordinators[index] = self._new_coordinator(TopicPartition(self.TOPIC, index))
            if not coordinator.begin():
                self._to_load.put_nowait(coordinator)
        return coordinator

    def _there(self) -> Iterator[One]:
        """Give the coordinators that are there."""
        return (coordinator for coordinator in self._coordinators.values() if coordinator.loaded)

    def _failed(self, coordinator: One, error: Exception) -> None:
        self._log.error("coordinator away", partition=str(coordinator.name), cause=error)
        seconds = self._seconds_away(coordinator.name.partition)
        asyncio.get_running_loop().call_later(seconds, self._to_load.put_nowait, coordinator)

    def _seconds_away(self, index: int) -> float:
        """Let a coordinator be back soon, and one that fails again and again not read its log all the time."""
        now = self._clock.monotonic()
        failed_at, seconds = self._away.get(index, (now, 0.0))
        follows = now - failed_at < 2 * COORDINATOR_RELOAD_SECONDS_MAX
        seconds = min(max(2 * seconds, COORDINATOR_RELOAD_SECONDS_MIN), COORDINATOR_RELOAD_SECONDS_MAX)
        seconds = seconds if follows else COORDINATOR_RELOAD_SECONDS_MIN
        self._away[index] = (now, seconds)
        return seconds

    def _follow(self, delta: MetadataDelta) -> None:
        if any(topic.name == self.TOPIC for topic in delta.deleted):
            coordinators, self._coordinators = self._coordinators, {}
            for coordinator in coordinators.values():
                coordinator.dismiss(Refusal(ErrorCode.NOT_COORDINATOR, f"{self.TOPIC} was deleted"))


@lru_cache(maxsize=COORDINATED_NAMES_PLACED_MAX)
def partition_of(name: str, partition_count: int) -> int:
    """Give the partition of a name, as Kafka finds it: by Java's hash."""
    hashed = 0
    encoded = name.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(encoded), 2):
        hashed = (31 * hashed + int.from_bytes(encoded[position : position + 2], "big")) & 0xFFFF_FFFF
    signed = hashed - (1 << 32) if hashed >= 1 << 31 else hashed
    return abs(signed) % partition_count if signed != -(1 << 31) else 0
