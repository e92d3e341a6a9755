"""The group coordinators of this node: one machine per partition of `__consumer_offsets`.

A group belongs to the partition that its name hashes to. A partition that was never written has an empty machine at
once; the others are read in the background after a start, and whoever asks for a group meanwhile is told to ask again.
When a partition's log fails, those who wait are told, and it is read again a little later.
"""

import asyncio
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from riverlog.drivers.metadata import MetadataDriver
from riverlog.drivers.replicas import Replicas
from riverlog.metadata.commands.topics import CreateTopics, NewTopic
from riverlog.metadata.delta import MetadataDelta
from riverlog.metadata.image import OFFSETS_TOPIC
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import TopicId, TopicPartition
from riverlog.model.limits import COORDINATOR_RELOAD_SECONDS, GROUPS_PLACED_MAX
from riverlog.model.ports import Clock, Random
from riverlog.observe.logging import get_logger

if TYPE_CHECKING:
    from riverlog.drivers.group_coordinator import GroupCoordinator
    from riverlog.groups.commands import GroupsCommand
    from riverlog.groups.machine import GroupsMachine


class Groups:
    """Finds the coordinator of a group, and keeps all of them running."""

    def __init__(self, metadata: MetadataDriver, replicas: Replicas, *, clock: Clock, random: Random) -> None:
        self._metadata = metadata
        self._replicas = replicas
        self._clock = clock
        self._random = random
        self._coordinators: dict[int, GroupCoordinator] = {}  # of the partitions that were used or written so far
        self._to_load: asyncio.Queue[GroupCoordinator] = asyncio.Queue()
        self._stopping = False
        self._log = get_logger("riverlog.groups")

    def start(self) -> None:
        """Follow the metadata."""
        self._metadata.watch(self._follow)

    async def run(self) -> None:
        """Read what was written, one partition after the other, now and when a log has failed."""
        topic = self._metadata.image.topic(OFFSETS_TOPIC)
        for index in range(0 if topic is None else topic.partition_count):
            if self._replicas.home_of(TopicPartition(OFFSETS_TOPIC, index)) is not None:
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
        """Tell members that wait for others that this coordinator goes away: the node is about to stop."""
        self._stopping = True
        for coordinator in self._coordinators.values():
            coordinator.dismiss(Refusal(ErrorCode.NOT_COORDINATOR, "the node is stopping"))

    async def close(self) -> None:
        """Wait until all that was decided is committed."""
        for coordinator in self._coordinators.values():
            await coordinator.close()

    def submit(self, group_id: str, command: "GroupsCommand") -> "asyncio.Future[Any]":
        """Let the group's coordinator decide now; the reply comes once it rests on committed records.

        Refusal, from the call or the future, where there is no coordinator, or not yet.
        """
        topic = self._metadata.image.topic(OFFSETS_TOPIC)
        if topic is None or self._stopping:
            raise Refusal(ErrorCode.NOT_COORDINATOR, "There are no coordinators here now; ask for the group's again.")
        return self._coordinator(partition_of(group_id, topic.partition_count)).submit(command)

    def submit_to_all(self, command: "GroupsCommand") -> "list[asyncio.Future[Any]]":
        """Ask every coordinator that was ever used; Refusal where one of them is not there yet."""
        return [coordinator.submit(command) for coordinator in self._coordinators.values()]

    def machines(self) -> "Iterator[GroupsMachine]":
        """Give the machines that are there, for those who look and change nothing."""
        return (coordinator.machine for coordinator in self._coordinators.values() if coordinator.loaded)

    def loading(self) -> int:
        """Count the coordinators that are not there yet."""
        return sum(not coordinator.loaded for coordinator in self._coordinators.values())

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

    def _coordinator(self, index: int) -> "GroupCoordinator":
        """Give the coordinator of a partition, and begin it when it is asked for the first time."""
        coordinator = self._coordinators.get(index)
        return coordinator if coordinator is not None else self._new_coordinator(index)

    def _new_coordinator(self, index: int) -> "GroupCoordinator":
        from riverlog.drivers.group_coordinator import GroupCoordinator  # a node without groups starts without it

        coordinator = self._coordinators[index] = GroupCoordinator(
            TopicPartition(OFFSETS_TOPIC, index),
            self._replicas,
            self._clock,
            settings=lambda: self._metadata.settings,
            image=lambda: self._metadata.image,
            failed=self._failed,
        )
        if not coordinator.begin():
            self._to_load.put_nowait(coordinator)
        return coordinator

    def _failed(self, coordinator: "GroupCoordinator", error: Exception) -> None:
        self._log.error("group coordinator away", partition=str(coordinator.name), cause=error)
        asyncio.get_running_loop().call_later(COORDINATOR_RELOAD_SECONDS, self._to_load.put_nowait, coordinator)

    # -- following the metadata

    def _follow(self, delta: MetadataDelta) -> None:
        deleted = frozenset(topic.name for topic in delta.deleted)
        if OFFSETS_TOPIC in deleted:
            coordinators, self._coordinators = self._coordinators, {}
            for coordinator in coordinators.values():
                coordinator.dismiss(Refusal(ErrorCode.NOT_COORDINATOR, f"{OFFSETS_TOPIC} was deleted"))
            return
        touched = frozenset(topic.name for topic in (*delta.created, *delta.changed)) | deleted
        if touched:
            for coordinator in self._coordinators.values():
                coordinator.topics_changed(touched, deleted)


@lru_cache(maxsize=GROUPS_PLACED_MAX)
def partition_of(group_id: str, partition_count: int) -> int:
    """Give the partition of a group, as Kafka finds it: by Java's hash of the name."""
    hashed = 0
    encoded = group_id.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(encoded), 2):
        hashed = (31 * hashed + int.from_bytes(encoded[position : position + 2], "big")) & 0xFFFF_FFFF
    signed = hashed - (1 << 32) if hashed >= 1 << 31 else hashed
    return abs(signed) % partition_count if signed != -(1 << 31) else 0
