"""The partitions that this node leads, opened on demand and kept in step with the cluster's metadata.

A partition is opened when somebody first asks for it: creating a thousand of them costs a thousand records of
metadata, not a thousand folders. After a crash, one with much to recover is opened beside the loop. One that another
node leads is neither opened nor recovered, and its folder stays; one that was open when its leader changed stays open.
"""

import asyncio

from riverlog.controller.view import MetadataView
from riverlog.log.directory import LOG_STARTS_FILE
from riverlog.log.log import Log
from riverlog.metadata.delta import MetadataDelta
from riverlog.metadata.image import PartitionImage, TopicImage
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_EPOCH, NodeId, TopicPartition
from riverlog.model.ports import Clock, Disk
from riverlog.model.settings import Durability
from riverlog.observe.logging import get_logger
from riverlog.partitions.assignment import DirectoryAssignment
from riverlog.partitions.cold_reads import ColdReads
from riverlog.partitions.limits import RECOVERED_AT_ONCE_BYTES_MAX, RECOVERY_RETRY_SECONDS
from riverlog.partitions.partition import Partition
from riverlog.partitions.recovery import Recovery
from riverlog.partitions.registry import NodeDirectory, PartitionRegistry
from riverlog.partitions.removal import PartitionRemoval
from riverlog.partitions.replica import check_epoch, not_led
from riverlog.partitions.turn import Turn


class Replicas:
    """Finds this node's partitions and opens them."""

    def __init__(
        self,
        node_id: NodeId,
        registry: PartitionRegistry,
        assignment: DirectoryAssignment,
        removal: PartitionRemoval,
        metadata: MetadataView,
        *,
        clock: Clock,
        disk: Disk,
        cold_reads: ColdReads,
        turn: Turn,
    ) -> None:
        self._node_id = node_id
        self._registry = registry
        self._opened = registry.opened  # for `get`: one look-up for every request
        self._assignment = assignment
        self._removal = removal
        self._metadata = metadata
        self._clock = clock
        self._disk = disk
        self._cold_reads = cold_reads
        self._turn = turn
        self._put_off: dict[TopicPartition, float] = {}  # could not be opened just now: until when they rest
        self._log = get_logger("riverlog.replicas")

    def start(self) -> None:
        """Follow the metadata."""
        self._metadata.watch(self._follow)

    async def recover(self) -> None:
        """Open beside the loop what takes long to open, for ever."""
        async with asyncio.TaskGroup() as recoveries:
            for directory in self._registry.directories:
                recoveries.create_task(directory.recovery.run(self._recovered))

    def get(self, topic: str, index: int, epoch: int = NO_EPOCH) -> Partition | None:
        """Return a partition that this node leads, opening it if need be; None where the cluster has none.

        Refusal where another node leads it, where it is not led in the epoch that is named, and where the disk is in
        the way; Recovering where a crash has left so much to read that it takes a while.
        """
        partition = self._opened.get((topic, index))
        if partition is None or not partition.is_led:
            partition = self._open(topic, index, epoch)
        if partition is not None:
            partition.check_epoch(epoch)
        return partition

    def has_folder(self, name: TopicPartition) -> bool:
        """Return whether a partition was ever used, open or not."""
        return name in self._registry.directory_of

    def open_unasked(self, name: TopicPartition) -> None:
        """Open a partition before somebody asks for it, or have it recovered; Refusal where the disk is in the way."""
        if name not in self._opened and name not in self._registry.leaving and self._leads(name):
            self._open(name.topic, name.partition, asked=False)

    def check_recovered(self, topic: str, index: int) -> None:
        """Raise Recovering, or Refusal, where a partition is being recovered; open nothing."""
        name = TopicPartition(topic, index)
        if (recovery := self._recovery_of(name)) is not None:
            raise recovery.ask(name)

    def is_recovering(self, name: TopicPartition) -> bool:
        """Return whether a partition is being recovered, or is to be before it can be used."""
        return self._recovery_of(name) is not None

    async def wait_recovered(self, name: TopicPartition) -> None:
        """Wait until a partition is not being recovered any more."""
        if (recovery := self._recovery_of(name)) is not None:
            await recovery.wait(name)

    def stop_waiting(self) -> None:
        """Wake fetches that wait for records, to answer with what there is: the node is about to stop."""
        self._registry.stopping = True
        for partition in self._opened.values():
            partition.wake()

    # -- opening

    def _open(self, topic: str, index: int, epoch: int = NO_EPOCH, *, asked: bool = True) -> Partition | None:
        known = self._metadata.image.topic(topic)
        if known is None or not 0 <= index < known.partition_count:
            return None
        replica = known.partition(index)
        name = TopicPartition(topic, index)
        if replica.leader != self._node_id:
            if self._node_id in replica.replicas:
                check_epoch(name, replica.leader_epoch, epoch)
            raise not_led(name)
        if name in self._registry.leaving:
            raise Refusal(ErrorCode.LEADER_NOT_AVAILABLE, f"an earlier {name} is still being removed; try again")
        directory = self._assignment.directory_for(name, replica)
        directory.health.check_online()
        if name in self._registry.directory_of and self._recovers(name, directory):
            if asked:
                raise directory.recovery.ask(name)
            return None
        try:
            log = directory.logs.create_log(
                name, known.id, self._metadata.topic_config(topic), now_ms=self._clock.wall_ms()
            )
        except OSError as error:
            raise directory.health.failed(error) from error
        return self._serve(name, known, log, directory)

    def _serve(self, name: TopicPartition, topic: TopicImage, log: Log, directory: NodeDirectory) -> Partition:
        """Serve a log that was just opened."""
        self._registry.directory_of[name] = directory
        if log.bytes_cut:
            self._log.warning(
                "torn end of log cut off", partition=str(name), bytes=log.bytes_cut, log_end_offset=log.log_end_offset
            )
        if log.start_not_believed is not None:
            self._log.error(
                "log start not believed",
                partition=str(name),
                written_down=log.start_not_believed,
                log_start_offset=log.log_start_offset,
                log_end_offset=log.log_end_offset,
                detail=f"{LOG_STARTS_FILE} names an offset that the log never reached; nothing was deleted",
            )
        replica = topic.partition(name.partition)
        partition = self._opened[name] = Partition(
            name,
            topic.id,
            log,
            replica.leader_epoch,
            health=directory.health,
            flusher=directory.flusher,
            cold_reads=self._cold_reads,
            turn=self._turn,
        )
        if replica.leader != self._node_id:  # it was recovered for this node, which leads no more
            partition.resign(replica.leader_epoch)
        return partition

    def _leads(self, name: TopicPartition) -> bool:
        """Return whether this node leads a partition, as far as it knows."""
        topic = self._metadata.image.topic(name.topic)
        if topic is None or name.partition >= topic.partition_count:
            return False
        return topic.partition(name.partition).leader == self._node_id

    # -- recovering

    def _recovery_of(self, name: TopicPartition) -> Recovery | None:
        """Return the recovery that has a partition, or takes it now; None where it needs none."""
        directory = self._registry.directory_of.get(name)
        if directory is None or name in self._opened or name in self._registry.leaving or not self._leads(name):
            return None
        return directory.recovery if self._recovers(name, directory) else None

    def _recovers(self, name: TopicPartition, directory: NodeDirectory) -> bool:
        """Return whether a partition that is not open is being recovered; if it has to be, begin.

        What is little work is done at once, when the partition is opened. Flushing what was recovered is not.
        """
        if name in directory.recovery:
            return True
        if directory.health.offline:
            return False
        if self._put_off and self._put_off.get(name, 0.0) > self._clock.monotonic():
            raise Refusal(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} could not be opened just now; try again")
        config = self._metadata.topic_config(name.topic)
        opening = directory.logs.opening(name, config, now_ms=self._clock.wall_ms())
        try:
            size = opening.unread_bytes(self._disk)
            if opening.clean and opening.is_cached(self._disk):
                return False
        except OSError as error:
            raise directory.health.failed(error) from error
        if not opening.clean and size <= (RECOVERED_AT_ONCE_BYTES_MAX if config.durability is Durability.OS else 0):
            return False
        directory.recovery.add(opening, size)
        return True

    def _recovered(self, name: TopicPartition, result: Log | OSError) -> None:
        """Serve a log that was opened elsewhere, unless its topic was deleted meanwhile."""
        topic = self._metadata.image.topic(name.topic)
        directory = self._registry.directory_of.get(name)
        if topic is None or directory is None or name in self._registry.leaving:
            return
        try:
            if isinstance(result, OSError):
                raise result
            directory.logs.adopt_log(name, topic.id, result)
        except OSError as error:
            directory.health.failed(error)
            self._put_off[name] = self._clock.monotonic() + RECOVERY_RETRY_SECONDS
            return
        self._put_off.pop(name, None)
        result.configure(self._metadata.topic_config(name.topic))
        self._serve(name, topic, result, directory)

    # -- following the metadata

    def _follow(self, delta: MetadataDelta) -> None:
        """Bring the partitions in step with a change."""
        for topic in delta.deleted:
            for index in range(topic.partition_count):
                self._put_off.pop(TopicPartition(topic.name, index), None)
            self._removal.delete(topic)
        for topic, indexes in delta.moved:
            for index in indexes:
                if (partition := self._opened.get((topic.name, index))) is not None:
                    self._lead_or_resign(partition, topic.partition(index))
        for partition in (
            self._opened.values()
            if delta.nodes_configured
            else [partition for topic in delta.configured for partition in self._opened_of(topic)]
        ):
            partition.log.configure(self._metadata.topic_config(partition.name.topic))

    def _lead_or_resign(self, partition: Partition, facts: PartitionImage) -> None:
        """Serve a partition while this node leads it, and in no other epoch."""
        if facts.leader == self._node_id:
            partition.lead(facts.leader_epoch)
        elif partition.is_led:
            partition.resign(facts.leader_epoch)

    def _opened_of(self, topic: TopicImage) -> list[Partition]:
        names = ((topic.name, index) for index in range(topic.partition_count))
        return [partition for name in names if (partition := self._opened.get(name)) is not None]
