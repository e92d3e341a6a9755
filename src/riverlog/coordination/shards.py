"""The shards of one internal topic on this node, one for each partition that it leads.

What is coordinated (a group, a transactional id) belongs to the partition that its name hashes to, and to the broker
that leads it: when another one does, all that was under way is refused, and nothing is decided here any more. A
partition that was never written has an empty machine at once; the others are read in the background, once all of their
logs is committed, and whoever asks meanwhile is told to ask again. When a partition's log fails, those who wait are
told, and it is read again a little later. One whose log is damaged stays away if its machine needs all of it; the
others do not wait for it.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from riverlog.controller.metadata_requests import MetadataRequests
from riverlog.controller.view import MetadataView
from riverlog.coordination.futures import refused
from riverlog.coordination.limits import (
    COORDINATED_NAMES_PLACED_MAX,
    COORDINATOR_RELOAD_SECONDS_MAX,
    COORDINATOR_RELOAD_SECONDS_MIN,
)
from riverlog.coordination.shard import Shard
from riverlog.coordination.shard_log import Damaged
from riverlog.metadata.commands.topics import TopicCreation
from riverlog.metadata.delta import MetadataDelta
from riverlog.metadata.image import TopicImage
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_NODE, LeaderEpoch, NodeId, TopicId, TopicPartition
from riverlog.model.limits import REPLICAS_MAX
from riverlog.model.machine import Command, ReplicatedMachine
from riverlog.model.ports import Clock, Random
from riverlog.observe.logging import get_logger
from riverlog.partitions.replicas import Replicas

Machine = TypeVar("Machine", bound=ReplicatedMachine[Any, Any])
Fact = TypeVar("Fact")
Reply = TypeVar("Reply")


class Shards(ABC, Generic[Machine, Fact]):
    """Finds the shard that a name belongs to, and keeps all of them running."""

    TOPIC: ClassVar[str]

    def __init__(
        self, metadata: MetadataView, requests: MetadataRequests, replicas: Replicas, *, clock: Clock, random: Random
    ) -> None:
        self._metadata = metadata
        self._requests = requests
        self._replicas = replicas
        self._clock = clock
        self._random = random
        self._shards: dict[int, Shard[Machine, Fact]] = {}  # of those led here that were used or written so far
        self._to_load: asyncio.Queue[Shard[Machine, Fact]] = asyncio.Queue()
        self._away: dict[int, tuple[float, float]] = {}  # by partition: when its log failed last, and for how long
        self._stopping = False
        self._log = get_logger("riverlog.coordinators")

    def __iter__(self) -> Iterator[Shard[Machine, Fact]]:
        """Go through the shards that are there or are being read."""
        return iter(self._shards.values())

    def start(self) -> None:
        """Follow the metadata."""
        self._metadata.watch(self._follow)

    async def run(self) -> None:
        """Read what was written, one partition after the other, now and when a log has failed."""
        topic = self._metadata.image.topic(self.TOPIC)
        if topic is not None:
            self._lead_or_resign(topic, range(topic.partition_count))
        while True:
            await asyncio.sleep(0)  # opening a log may take its time, and there may be many
            shard = await self._to_load.get()
            if self._is_current(shard):
                await self._load(shard)

    async def _load(self, shard: Shard[Machine, Fact]) -> None:
        try:
            await self._replicas.wait_recovered(shard.name)
            if not shard.is_committed(lambda: self._to_load.put_nowait(shard)):
                return
            await shard.load()
            if shard.loaded:
                self._loaded(shard)
        except Damaged as damage:
            self._log.error("coordinator offline", partition=str(shard.name), detail=damage.message)
        except Exception as error:  # of the disk, or in what it holds
            self._failed(shard, error)

    def stop_waiting(self) -> None:
        """Warn those who wait for somebody else that their coordinator goes away: the node is about to stop."""
        self._stopping = True
        self._dismiss("the node is stopping")

    async def close(self) -> None:
        """Wait until all that was decided is committed."""
        for shard in self:
            await shard.close()

    def submit(self, name: str, command: Command[Fact, Reply]) -> "asyncio.Future[Reply]":
        """Submit to the shard of a name now; the future ends with the reply once it rests on committed records.

        It ends with a Refusal where there is no coordinator, or not yet.
        """
        try:
            shard = self._shard(self._index_of(name))
        except Refusal as refusal:
            return refused(refusal)
        return shard.submit(command)

    def submit_to(self, index: int, command: Command[Fact, Reply]) -> "asyncio.Future[Reply]":
        """Submit to the shard of a partition now, as above."""
        try:
            shard = self._shard(index)
        except Refusal as refusal:
            return refused(refusal)
        return shard.submit(command)

    def submit_to_all(self, command: Command[Fact, Reply]) -> "list[asyncio.Future[Reply]]":
        """Ask every shard here that was ever used, as above; not one that is damaged: waiting is of no use."""
        return [shard.submit(command) for shard in self if shard.damage is None]

    def damage(self) -> dict[int, Damaged]:
        """Return the partitions whose logs are too damaged for their machines, and why."""
        return {shard.name.partition: shard.damage for shard in self if shard.damage is not None}

    def partition_of(self, name: str) -> TopicPartition:
        """Find the partition that a name belongs to; Refusal where there are no coordinators."""
        return TopicPartition(self.TOPIC, self._index_of(name))

    def leader_of(self, name: TopicPartition) -> NodeId:
        """Return the broker that coordinates what belongs to a partition of the topic; -1 where none does."""
        topic = self._metadata.image.topic(name.topic)
        return NO_NODE if topic is None else topic.partition(name.partition).leader

    def is_here(self, name: TopicPartition) -> bool:
        """Return whether this broker coordinates what belongs to a partition."""
        return self.leader_of(name) == self._metadata.settings.node_id

    def check_loaded(self, index: int) -> None:
        """Begin the shard of a partition if nobody has; Refusal where it is still reading its log, or not here."""
        shard = self._shard(index)
        if not shard.loaded:
            raise shard.absence()

    def lead(self, index: int, epoch: LeaderEpoch) -> None:
        """Coordinate what belongs to a partition: this node leads it in this epoch. What was written is read first."""
        shard = self._shards.get(index)
        if shard is not None:
            shard.lead(epoch)
        elif self._replicas.has_folder(TopicPartition(self.TOPIC, index)):
            self._begin(index, epoch)

    def resign(self, index: int) -> None:
        """Refuse all who wait, and coordinate nothing that belongs to a partition: another broker leads it, or none."""
        shard = self._shards.pop(index, None)
        if shard is not None:
            self._log.info("coordinator resigned", partition=str(shard.name), epoch=shard.epoch)
            shard.resign(_elsewhere(shard.name))
            self._resigned(shard)

    def loading(self) -> int:
        """Count the shards that are not there yet."""
        return sum(not shard.loaded and shard.damage is None for shard in self)

    def machines(self) -> Iterator[Machine]:
        """Go through the machines that are there, for those who look and change nothing."""
        return (shard.machine for shard in self if shard.loaded)

    async def ensure_topic(self) -> None:
        """Create the topic that coordinators write to, unless it is there; Refusal where that fails."""
        if self._metadata.image.topic(self.TOPIC) is not None:
            return
        (outcome,) = await self._requests.create_topics((self._new_topic(),))
        if outcome.code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, outcome.message or "The topic cannot be created.")

    @abstractmethod
    def _new_topic(self) -> TopicCreation:
        """Describe the topic as it is to be created."""

    @abstractmethod
    def _new_shard(self, name: TopicPartition, epoch: LeaderEpoch) -> Shard[Machine, Fact]:
        """Build the shard of a partition."""

    def _loaded(self, shard: Shard[Machine, Fact]) -> None:
        """Catch up, in a shard that has read its log, with what it missed."""

    def _resigned(self, shard: Shard[Machine, Fact]) -> None:
        """End what a shard that is not this node's any more has under way elsewhere."""

    def _internal(self, partitions: int, replication_factor: int, configs: Mapping[str, str]) -> TopicCreation:
        """Describe a topic that keeps the newest fact about everything, on no more brokers than live."""
        return TopicCreation(
            self.TOPIC,
            TopicId(UUID(int=self._random.getrandbits(128), version=4)),
            partitions,
            min(
                replication_factor,
                REPLICAS_MAX,
                sum(broker.is_active for broker in self._metadata.image.brokers.values()) or 1,
            ),
            configs={"cleanup.policy": "compact", **configs},
        )

    def _index_of(self, name: str) -> int:
        topic = self._metadata.image.topic(self.TOPIC)
        if topic is None or self._stopping:
            raise Refusal(ErrorCode.NOT_COORDINATOR, "There are no coordinators here now; ask for one again.")
        return index_of(name, topic.partition_count)

    def _shard(self, index: int) -> Shard[Machine, Fact]:
        """Return the shard of a partition, and begin it when it is asked for the first time; Refusal where this node
        does not lead the partition."""
        shard = self._shards.get(index)
        if shard is None:
            topic = self._metadata.image.topic(self.TOPIC)
            assert topic is not None, "whoever knows an index knows the topic"
            facts = topic.partition(index)
            if facts.leader != self._metadata.settings.node_id:
                raise _elsewhere(TopicPartition(self.TOPIC, index))
            shard = self._begin(index, facts.leader_epoch)
        return shard

    def _begin(self, index: int, epoch: LeaderEpoch) -> Shard[Machine, Fact]:
        shard = self._shards[index] = self._new_shard(TopicPartition(self.TOPIC, index), epoch)
        if not shard.begin():
            self._to_load.put_nowait(shard)
        return shard

    def _is_current(self, shard: Shard[Machine, Fact]) -> bool:
        """Return whether a shard still is the one of its partition."""
        return self._shards.get(shard.name.partition) is shard

    def _failed(self, shard: Shard[Machine, Fact], error: Exception) -> None:
        """Load a shard again a little later, unless it is another broker's by now."""
        if not self._is_current(shard):
            return
        if isinstance(error, Refusal):  # the disk is in the way, which has a line of its own
            self._log.error("coordinator away", partition=str(shard.name), detail=error.message)
        else:
            self._log.error("coordinator away", partition=str(shard.name), cause=error)
        seconds = self._seconds_away(shard.name.partition)
        asyncio.get_running_loop().call_later(seconds, self._to_load.put_nowait, shard)

    def _seconds_away(self, index: int) -> float:
        """Bring a shard back soon, but one that fails again and again ever later."""
        now = self._clock.monotonic()
        failed_at, seconds = self._away.get(index, (now, 0.0))
        follows = now - failed_at < 2 * COORDINATOR_RELOAD_SECONDS_MAX
        seconds = min(max(2 * seconds, COORDINATOR_RELOAD_SECONDS_MIN), COORDINATOR_RELOAD_SECONDS_MAX)
        seconds = seconds if follows else COORDINATOR_RELOAD_SECONDS_MIN
        self._away[index] = (now, seconds)
        return seconds

    def _follow(self, delta: MetadataDelta) -> None:
        if any(topic.name == self.TOPIC for topic in delta.deleted):
            self._log.warning("internal topic deleted; what was kept in it is lost", topic=self.TOPIC)
            self._dismiss(f"{self.TOPIC} was deleted")
            self._shards = {}
        for topic, indexes in delta.moved:
            if topic.name == self.TOPIC:
                self._lead_or_resign(topic, indexes)

    def _lead_or_resign(self, topic: TopicImage, indexes: Iterable[int]) -> None:
        """Coordinate what belongs to those of the partitions that this node leads, and to no other one."""
        for index in indexes:
            facts = topic.partition(index)
            if facts.leader == self._metadata.settings.node_id:
                self.lead(index, facts.leader_epoch)
            else:
                self.resign(index)

    def _dismiss(self, reason: str) -> None:
        for shard in self:
            shard.dismiss(Refusal(ErrorCode.NOT_COORDINATOR, reason))


def _elsewhere(name: TopicPartition) -> Refusal:
    return Refusal(ErrorCode.NOT_COORDINATOR, f"{name} is not led by this broker; look for the coordinator again")


@lru_cache(maxsize=COORDINATED_NAMES_PLACED_MAX)
def index_of(name: str, partition_count: int) -> int:
    """Find the partition of a name, as Kafka does: by Java's hash."""
    hashed = 0
    encoded = name.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(encoded), 2):
        hashed = (31 * hashed + int.from_bytes(encoded[position : position + 2], "big")) & 0xFFFF_FFFF
    signed = hashed - (1 << 32) if hashed >= 1 << 31 else hashed
    return abs(signed) % partition_count if signed != -(1 << 31) else 0
