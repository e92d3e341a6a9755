"""The group coordinators of this node: one machine per partition of `__consumer_offsets`.

A group belongs to the partition that its name hashes to. A partition that was never written has an empty machine at
once; the others are read in the background after a start, and whoever asks for a group meanwhile is told to ask again.
When a partition's log fails, those who wait are told, and it is read again a little later.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final, Never
from uuid import UUID

from riverlog.drivers.coordinator import Coordinator
from riverlog.drivers.metadata import MetadataDriver
from riverlog.drivers.partition_log import PartitionLog
from riverlog.drivers.replicas import Replicas
from riverlog.groups.batches import decode_facts, encode_facts
from riverlog.groups.commands import GroupsCommand, TopicsChanged, TopicsDeleted, Woken
from riverlog.groups.machine import GroupsMachine
from riverlog.groups.records import GroupFact
from riverlog.metadata.commands.topics import CreateTopics, NewTopic
from riverlog.metadata.delta import MetadataDelta
from riverlog.metadata.image import OFFSETS_TOPIC
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import TopicId, TopicPartition
from riverlog.model.limits import COORDINATOR_RELOAD_SECONDS
from riverlog.model.ports import Clock, Random
from riverlog.observe.logging import get_logger

_LOADING: Final = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class Groups:
    """Finds the coordinator of a group, and keeps all of them running."""

    def __init__(self, metadata: MetadataDriver, replicas: Replicas, *, clock: Clock, random: Random) -> None:
        self._metadata = metadata
        self._replicas = replicas
        self._clock = clock
        self._random = random
        self._shards: dict[int, Shard] = {}
        self._to_load: asyncio.Queue[Shard] = asyncio.Queue()
        self._stopping = False
        self._log = get_logger("riverlog.groups")

    def start(self) -> None:
        """Follow the metadata, and find what was written."""
        self._metadata.watch(self._follow)
        topic = self._metadata.image.topic(OFFSETS_TOPIC)
        for index in range(0 if topic is None else topic.partition_count):
            if self._replicas.home_of(TopicPartition(OFFSETS_TOPIC, index)) is not None:
                self._shard(index)

    async def run(self) -> None:
        """Read what was written, one partition after the other."""
        while True:
            shard = await self._to_load.get()
            if self._shards.get(shard.index) is shard:
                await self._load(shard)

    def stop_waiting(self) -> None:
        """Tell members that wait for others that this coordinator goes away: the node is about to stop."""
        self._stopping = True
        for shard in self._shards.values():
            shard.dismiss(Refusal(ErrorCode.NOT_COORDINATOR, "the node is stopping"))

    async def close(self) -> None:
        """Wait until all that was decided is committed."""
        for shard in self._shards.values():
            await shard.close()

    def submit(self, group_id: str, command: GroupsCommand) -> "asyncio.Future[Any]":
        """Let the group's coordinator decide now; the reply comes once it rests on committed records.

        Refusal, from the call or the future, where there is no coordinator, or not yet.
        """
        topic = self._metadata.image.topic(OFFSETS_TOPIC)
        if topic is None or self._stopping:
            raise Refusal(ErrorCode.NOT_COORDINATOR, "There are no coordinators here now; ask for the group's again.")
        return self._shard(partition_of(group_id, topic.partition_count)).submit(command)

    def submit_to_all(self, command: GroupsCommand) -> "list[asyncio.Future[Any]]":
        """Ask every coordinator that was ever used; Refusal where one of them is not there yet."""
        return [shard.submit(command) for shard in self._shards.values()]

    def machines(self) -> Iterator[GroupsMachine]:
        """Give the machines that are there, for those who look and change nothing."""
        return (shard.machine for shard in self._shards.values() if shard.loaded)

    def loading(self) -> int:
        """Count the coordinators that are not there yet."""
        return sum(not shard.loaded for shard in self._shards.values())

    async def ensure_topic(self) -> None:
        """Create the topic that coordinators write to, unless it is there; Refusal where that fails."""
        if self._metadata.image.topic(OFFSETS_TOPIC) is not None:
            return
        settings = self._metadata.settings
        new = NewTopic(
            OFFSETS_TOPIC,
            TopicId(UUID(int=self._random.getrandbits(128), version=4)),
            settings.offsets_topic_num_partitions,
            min(settings.offsets_topic_replication_factor, len(self._metadata.image.brokers)),
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(settings.offsets_topic_segment_bytes),
            },
        )
        (created,) = (await self._metadata.submit(CreateTopics((new,)))).topics
        if created.outcome.code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise Refusal(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, created.outcome.message or "The topic cannot be created."
            )

    def _shard(self, index: int) -> "Shard":
        """Give the coordinator of a partition, and begin it when it is asked for the first time."""
        shard = self._shards.get(index)
        if shard is None:
            log = PartitionLog(
                TopicPartition(OFFSETS_TOPIC, index),
                self._replicas,
                self._clock,
                encode=encode_facts,
                decode=decode_facts,
            )
            shard = self._shards[index] = Shard(index, log, self._new_machine, self._clock, self._failed)
            if log.begun:
                self._to_load.put_nowait(shard)
            else:
                shard.begin()
        return shard

    def _new_machine(self) -> GroupsMachine:
        return GroupsMachine(self._metadata.settings, self._metadata.image)

    async def _load(self, shard: "Shard") -> None:
        try:
            await shard.load()
        except Exception as error:  # of the disk, or in what it holds
            self._failed(shard, error)
            return
        image = self._metadata.image
        gone = frozenset(name for name in shard.machine.state.offsets.topics() if image.topic(name) is None)
        shard.tell(TopicsChanged(image, gone), TopicsDeleted(gone))  # what was missed meanwhile

    def _failed(self, shard: "Shard", error: Exception) -> None:
        self._log.error("group coordinator away", partition=shard.index, cause=error)
        asyncio.get_running_loop().call_later(COORDINATOR_RELOAD_SECONDS, self._to_load.put_nowait, shard)

    # -- following the metadata

    def _follow(self, delta: MetadataDelta) -> None:
        deleted = frozenset(topic.name for topic in delta.deleted)
        if OFFSETS_TOPIC in deleted:
            shards, self._shards = self._shards, {}
            for shard in shards.values():
                shard.dismiss(Refusal(ErrorCode.NOT_COORDINATOR, f"{OFFSETS_TOPIC} was deleted"))
            return
        touched = frozenset(topic.name for topic in (*delta.created, *delta.changed)) | deleted
        news = (TopicsChanged(delta.image, touched), TopicsDeleted(deleted))[: 2 if deleted else 1]
        for shard in self._shards.values() if touched else ():
            shard.tell(*news)


class Shard:
    """One partition's coordinator, with the timer that wakes its machine."""

    def __init__(
        self,
        index: int,
        log: PartitionLog[GroupFact],
        new_machine: Callable[[], GroupsMachine],
        clock: Clock,
        failed: Callable[["Shard", Exception], None],
    ) -> None:
        self.index = index
        self.loaded = False
        self._clock = clock
        self._failed = failed
        self._timer: asyncio.TimerHandle | None = None
        self._coordinator: Coordinator[GroupsCommand, GroupFact, Never] = Coordinator(
            new_machine=new_machine,
            log=log,
            clock=clock,
            view=lambda machine: None,
            committed=lambda view, records, effects: None,
            failed=self._log_failed,
        )

    @property
    def machine(self) -> GroupsMachine:
        machine = self._coordinator.machine
        assert isinstance(machine, GroupsMachine)
        return machine

    def begin(self) -> None:
        """Begin with nothing: the log is empty."""
        self._coordinator.start()
        self.loaded = True

    async def load(self) -> None:
        """Read the log."""
        await self._coordinator.load()
        self.loaded = True
        self._arm()

    def submit(self, command: GroupsCommand) -> "asyncio.Future[Any]":
        """Decide now."""
        if not self.loaded:
            raise Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "The coordinator is reading its log; try again.")
        if self._coordinator.crowded:
            raise Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "Too many wait for this coordinator; try again.")
        reply = self._coordinator.submit(command)
        self._arm()
        return reply

    def tell(self, *news: TopicsChanged | TopicsDeleted) -> None:
        """Let the machine know what has changed around it, if it is there; nobody waits for that."""
        for command in news:
            if self.loaded:
                self._coordinator.submit(command)
        self._arm()

    def dismiss(self, error: Exception) -> None:
        """Tell those who wait for other members that none will come."""
        self.loaded = False
        self._disarm()
        self._coordinator.dismiss(error)

    async def close(self) -> None:
        self._disarm()
        await self._coordinator.drain()

    def _log_failed(self, error: Exception) -> None:
        self.loaded = False
        self._disarm()
        self._failed(self, error)

    def _arm(self) -> None:
        """Wake the machine when it wants; a timer that is too early only looks again, which is cheaper than to move
        it with every heartbeat."""
        deadline = self.machine.next_deadline() if self.loaded else None
        if deadline is None:
            return
        loop = asyncio.get_running_loop()
        when = loop.time() + max(0.0, deadline - self._clock.monotonic())
        if self._timer is None or when < self._timer.when():
            self._disarm()
            self._timer = loop.call_at(when, self._wake)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake(self) -> None:
        self._timer = None
        deadline = self.machine.next_deadline()
        if deadline is not None and deadline <= self._clock.monotonic():
            self._coordinator.submit(Woken())
        self._arm()


def partition_of(group_id: str, partition_count: int) -> int:
    """Give the partition of a group, as Kafka finds it: by Java's hash of the name."""
    hashed = 0
    encoded = group_id.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(encoded), 2):
        hashed = (31 * hashed + int.from_bytes(encoded[position : position + 2], "big")) & 0xFFFF_FFFF
    signed = hashed - (1 << 32) if hashed >= 1 << 31 else hashed
    return abs(signed) % partition_count if signed != -(1 << 31) else 0
