"""The partitions that this node holds, kept in step with the cluster's metadata.

A partition is opened when somebody first asks for it: creating a thousand of them costs a thousand records of
metadata, not a thousand folders. After a crash, one with much to recover is opened beside the loop. A partition that
was deleted is gone for clients at once; its folder follows when nobody is at work on it.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from riverlog.controller.log import METADATA_FOLDER
from riverlog.controller.metadata import MetadataDriver
from riverlog.log.checkpoint import encode_uuid
from riverlog.log.directory import LogDirectory
from riverlog.log.log import Log
from riverlog.metadata.commands.partitions import LOST_DIRECTORY
from riverlog.metadata.delta import MetadataDelta
from riverlog.metadata.image import PartitionImage, TopicImage
from riverlog.model.disk_errors import SHORTAGE
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId, Offset, TopicPartition
from riverlog.model.ports import Clock, Disk, Processes, Random, Workers
from riverlog.model.settings import Durability
from riverlog.observe.logging import get_logger
from riverlog.partitions.cold_reads import ColdReads
from riverlog.partitions.directory_health import DirectoryHealth
from riverlog.partitions.flusher import Flusher
from riverlog.partitions.in_process_work import to_its_end
from riverlog.partitions.limits import (
    CHECKPOINT_TRIES_MAX,
    LOGS_CLOSING_MAX,
    RECOVERED_AT_ONCE_BYTES_MAX,
    RECOVERY_RETRY_SECONDS,
)
from riverlog.partitions.partition import Partition
from riverlog.partitions.recovery import Recovery
from riverlog.partitions.turn import Turn

_TRY_AGAIN_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class Home:
    """A log directory with all that goes with it."""

    directory: LogDirectory
    volume: DirectoryHealth
    flusher: Flusher


class Replicas:
    """Finds, opens and removes this node's partitions."""

    def __init__(
        self,
        node_id: NodeId,
        homes: Sequence[Home],
        metadata: MetadataDriver,
        *,
        clock: Clock,
        disk: Disk,
        random: Random,
        workers: Workers,
        cold_reads: ColdReads,
        turn: Turn,
        processes: Processes,
        recovery_lanes: int,
        away: Sequence[DirectoryHealth] = (),
    ) -> None:
        """Hold the partitions in these homes; directories that are `away` could not be opened."""
        self.stopping = False
        self._turn = turn
        self._node_id = node_id
        self._homes = homes
        self._away = away
        self._home_by_id = {home.directory.identity.directory_id: home for home in homes}
        self._has_lost = False  # some lie in a directory that is away
        self._torn: dict[TopicPartition, str] = {}  # found in several directories, and nobody knows which one counts
        self._metadata = metadata
        self._clock = clock
        self._disk = disk
        self._random = random
        self._workers = workers
        self._cold_reads = cold_reads
        self._recoveries = {
            home: Recovery(disk, workers, processes, lanes=recovery_lanes, opened=self._recovered) for home in homes
        }
        self._open: dict[tuple[str, int], Partition] = {}
        self._open_by_id: dict[tuple[bytes, int], Partition] = {}  # the same ones
        self._home_of: dict[TopicPartition, Home] = {}  # every partition that has a folder
        self._found_all = False  # the line above holds
        self._stray: list[tuple[TopicPartition, Home]] = []  # of no topic, and could not be set aside yet
        self._leaving: set[TopicPartition] = set()  # deleted, but the folder is still there
        self._put_off: dict[TopicPartition, float] = {}  # could not be opened just now: until when they rest
        self._removals: set[asyncio.Task[None]] = set()
        self._checkpointing = asyncio.Lock()
        self._log = get_logger("riverlog.replicas")

    def start(self) -> None:
        """Find the folders of partitions, set aside those that belong to no topic, and follow the metadata."""
        found: dict[TopicPartition, list[Home]] = {}
        for home in self._homes:
            try:
                for name in home.directory.partitions():
                    if str(name) == METADATA_FOLDER:
                        continue
                    if self._is_ours(name, home):
                        found.setdefault(name, []).append(home)
                    else:
                        self._stray.append((name, home))
            except OSError as error:  # one directory that cannot be looked at hides no other
                if error.errno in SHORTAGE:
                    raise
                home.volume.fail(f"its folders cannot be listed ({error})")
        self._set_aside()
        for name, homes in found.items():
            if len(homes) == 1 or self._choose(name, homes):
                self._home_of.setdefault(name, homes[0])
        self._found_all = True
        self._metadata.watch(self._follow)

    def _set_aside(self) -> None:
        """Set aside the folders that belong to no topic; one that cannot be now is tried again."""
        strays, self._stray = self._stray, []
        for name, home in strays:
            try:
                aside = home.directory.set_aside(name, self._random)
            except OSError as error:
                home.volume.failed(error)
                self._stray.append((name, home))
            else:
                self._log.warning("folder set aside: it belongs to no topic", partition=str(name), folder=aside)

    def _check_stray(self, name: TopicPartition) -> None:
        """Refuse to open a folder that belongs to a topic of the past, of the same name."""
        self._set_aside()
        if any(stray == name for stray, _ in self._stray):
            raise Refusal(ErrorCode.KAFKA_STORAGE_ERROR, f"an earlier {name} cannot be set aside now; try again")

    def found_elsewhere(self) -> dict[tuple[UUID, int], UUID]:
        """Return in which log directories partitions were found that lie elsewhere for all that the metadata say."""
        found: dict[tuple[UUID, int], UUID] = {}
        for name in (*self._home_of, *self._torn):
            topic = self._metadata.image.topic(name.topic)
            assert topic is not None
            home = self._home_of.get(name)
            directory = LOST_DIRECTORY if home is None else home.directory.identity.directory_id
            if self._directory_of(topic.partition(name.partition)) != directory:
                found[topic.id, name.partition] = directory
        return found

    def tell_lost(self) -> None:
        """Name the log directories that partitions of this node lie in and that are not there."""
        lost: dict[UUID, list[str]] = {}
        for topic in self._metadata.image.all_topics():
            for facts in topic.partitions:
                directory = self._directory_of(facts)
                if directory is not None and directory not in self._home_by_id:
                    lost.setdefault(directory, []).append(f"{topic.name}-{facts.index}")
        self._has_lost = bool(lost or self._torn)
        for directory, names in lost.items():
            self._log.error(
                "partitions are offline",
                partitions=len(names),
                first=names[0],
                directory_id=encode_uuid(directory),
                detail="their log directory is not among log.dirs, or empty; mount it and restart the node",
            )

    async def recover(self) -> None:
        """Open beside the loop what takes long to open, for ever."""
        async with asyncio.TaskGroup() as recoveries:
            for recovery in self._recoveries.values():
                recoveries.create_task(recovery.run())

    def get(self, topic: str, index: int) -> Partition | None:
        """Give a partition that this node leads, opening it if need be.

        Refusal where the disk is in the way, Recovering where a crash has left so much to read that it takes a while.
        """
        partition = self._open.get((topic, index))
        return partition if partition is not None else self._open_partition(topic, index)

    @property
    def has_unopened(self) -> bool:
        """Tell whether some partitions have a folder but are not open."""
        return len(self._open) < len(self._home_of)

    def check_recovered(self, topic: str, index: int) -> None:
        """Raise Recovering, or Refusal, where a partition is being recovered; open nothing."""
        name = TopicPartition(topic, index)
        if (recovery := self._recovery_of(name)) is not None:
            raise recovery.ask(name)

    def is_recovering(self, name: TopicPartition) -> bool:
        """Tell whether a partition is being recovered, or is to be before it can be used."""
        return self._recovery_of(name) is not None

    async def wait_recovered(self, name: TopicPartition) -> None:
        """Wait until a partition is not being recovered any more."""
        if (recovery := self._recovery_of(name)) is not None:
            await recovery.wait(name)

    def _recovery_of(self, name: TopicPartition) -> Recovery | None:
        """Give the recovery that has a partition, or takes it now; None where it needs none."""
        home = self._home_of.get(name)
        if home is None or name in self._open or name in self._leaving or not self._recovers(name, home):
            return None
        return self._recoveries[home]

    def open_unasked(self, name: TopicPartition) -> None:
        """Open a partition before somebody asks for it, or have it recovered; Refusal where the disk is in the way."""
        if name not in self._open and name not in self._leaving:
            self._open_partition(name.topic, name.partition, asked=False)

    def get_opened(self, topic_id: bytes, index: int) -> Partition | None:
        """Give a partition by its topic's id if it is open already: for those in a hurry."""
        return self._open_by_id.get((topic_id, index))

    def opened(self) -> list[Partition]:
        """List the partitions that are open."""
        return list(self._open.values())

    def unopened(self) -> Iterator[TopicPartition]:
        """Name the partitions that have a folder but are not open."""
        return (name for name in tuple(self._home_of) if name not in self._open)

    def homes(self) -> Sequence[Home]:
        return self._homes

    def volumes(self) -> Sequence[DirectoryHealth]:
        """Return the health of every directory, also of those that could not be opened."""
        return (*(home.volume for home in self._homes), *self._away)

    def volume_of(self, name: TopicPartition, facts: PartitionImage) -> DirectoryHealth | None:
        """Return the health of the directory in which a partition of this node lies, or will; None where it is away."""
        home = self._home_of.get(name) or self._home_by_id.get(self._directory_of(facts) or LOST_DIRECTORY)
        return None if home is None or name in self._torn else home.volume

    def is_offline(self, topic: TopicImage, facts: PartitionImage) -> bool:
        """Return whether this node would lead a partition, but its directory is away.

        Of one that goes offline while the node runs, clients are told by their requests, in words that say why.
        """
        if not self._has_lost or facts.leader != self._node_id:
            return False
        return self.volume_of(TopicPartition(topic.name, facts.index), facts) is None

    def home_of(self, name: TopicPartition) -> Home | None:
        """Say where a partition lies, if it has a folder."""
        return self._home_of.get(name)

    def look_at_disks(self) -> None:
        """See how much room is left, and remove what deleted partitions left behind."""
        for home in self._homes:
            home.volume.look()
            if home.volume.offline:
                continue
            try:
                folders = home.directory.deleted_folders()
            except OSError as error:
                home.volume.failed(error)
                continue
            if folders:
                self._run(self._remove_folders(home, folders))

    async def checkpoint(self) -> list[Home]:
        """Write down, durably, how far each log is flushed and where it starts; give the homes where that was done."""
        async with self._checkpointing:
            return [home for home in self._homes if not home.volume.offline and await self._checkpoint(home)]

    async def _checkpoint(self, home: Home) -> bool:
        try:
            for _ in range(CHECKPOINT_TRIES_MAX):
                plan = home.directory.pending_checkpoint(self._high_watermarks(home))
                await to_its_end(self._workers.run(plan.run))  # closing writes to the same files
                if home.directory.checkpointed(plan):
                    return True
        except OSError as error:
            home.volume.failed(error)
        return False

    def stop_waiting(self) -> None:
        """Let fetches that wait for records answer with what there is: the node is about to stop."""
        self.stopping = True
        for partition in self._open.values():
            partition.wake()

    async def close(self) -> None:
        """Flush and close every log, and note that this was done in good order."""
        while self._removals:
            await asyncio.wait(self._removals)
        for home in self._homes:
            await home.flusher.drain()
            if home.volume.offline or self._has_withdrawn(home):
                home.directory.abandon()
                continue
            all_recovered = self._found_all and not any(self._home_of[name] is home for name in self.unopened())
            close = partial(home.directory.close, self._high_watermarks(home), all_recovered=all_recovered)
            try:
                await self._close_logs(home)
                await self._workers.run(close)
            except OSError as error:
                home.volume.failed(error)
                home.directory.abandon()

    def _has_withdrawn(self, home: Home) -> bool:
        """Return whether a partition in a directory could not be flushed any more: then the next start recovers."""
        return any(
            not partition.keeps_files and self._home_of[partition.name] is home for partition in self._open.values()
        )

    async def _close_logs(self, home: Home) -> None:
        """Flush and close the logs of a directory, a few at a time: flushes that overlap share the disk's work."""
        closing = home.directory.closing()

        async def lane() -> None:
            for log, plan in closing:
                await self._workers.run(plan.run)
                log.closed(plan)

        lanes = await asyncio.gather(*(lane() for _ in range(LOGS_CLOSING_MAX)), return_exceptions=True)
        for failure in filter(None, lanes):
            raise failure

    def storage_failed(self, volume: DirectoryHealth) -> None:
        """Tell those who wait on a directory that has gone offline."""
        for name, home in self._home_of.items():
            if home.volume is volume and (partition := self._open.get(name)) is not None:
                partition.storage_failed()

    # -- opening

    def _is_ours(self, name: TopicPartition, home: Home) -> bool:
        """A folder is a live partition's if it has the id of a topic that the metadata knows.

        One without an id that was never flushed may be what is left of a deleted topic of the same name. One that was
        flushed has lost its id since: that is damage, and no reason to hide its records.
        """
        topic = self._metadata.image.topic(name.topic)
        if topic is None or name.partition >= topic.partition_count:
            return False
        try:
            topic_id = home.directory.topic_id(name)
        except PermissionError:  # whoever wants to use it is told
            return True
        return topic_id == topic.id or (topic_id is None and home.directory.was_flushed(name))

    def _open_partition(self, topic: str, index: int, *, asked: bool = True) -> Partition | None:
        known = self._metadata.image.topic(topic)
        if known is None or not 0 <= index < known.partition_count:
            return None
        facts = known.partition(index)
        if facts.leader != self._node_id:
            return None
        name = TopicPartition(topic, index)
        if name in self._leaving:
            raise Refusal(ErrorCode.LEADER_NOT_AVAILABLE, f"an earlier {name} is still being removed; try again")
        if self._stray:
            self._check_stray(name)
        home = self._home_of.get(name) or self._home_for(name, facts)
        home.volume.check_online()
        if name in self._home_of and self._recovers(name, home):
            if asked:
                raise self._recoveries[home].ask(name)
            return None
        try:
            log = home.directory.create_log(
                name, known.id, self._metadata.topic_config(topic), now_ms=self._clock.wall_ms()
            )
        except OSError as error:
            raise home.volume.failed(error) from error
        return self._begin(name, known, log, home)

    def _begin(self, name: TopicPartition, topic: TopicImage, log: Log, home: Home) -> Partition:
        """Serve a log that was just opened."""
        self._home_of[name] = home
        self._tell_what_was_found(name, log)
        epoch = topic.partition(name.partition).leader_epoch
        partition = Partition(
            name,
            topic.id,
            log,
            epoch,
            health=home.volume,
            flusher=home.flusher,
            cold_reads=self._cold_reads,
            turn=self._turn,
        )
        self._open[name] = self._open_by_id[topic.id.bytes, name.partition] = partition
        return partition

    # -- recovering

    def _recovers(self, name: TopicPartition, home: Home) -> bool:
        """Tell whether a partition that is not open is being recovered; if it has to be, begin.

        What is little work is done at once, when the partition is opened. Flushing what was recovered is not.
        """
        recovery = self._recoveries[home]
        if name in recovery:
            return True
        if home.volume.offline:
            return False
        if self._put_off and self._put_off.get(name, 0.0) > self._clock.monotonic():
            raise Refusal(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} could not be opened just now; try again")
        config = self._metadata.topic_config(name.topic)
        opening = home.directory.opening(name, config, now_ms=self._clock.wall_ms())
        try:
            size = opening.unread_bytes(self._disk)
            if opening.clean and opening.is_cached(self._disk):
                return False
        except OSError as error:
            raise home.volume.failed(error) from error
        if not opening.clean and size <= (RECOVERED_AT_ONCE_BYTES_MAX if config.durability is Durability.OS else 0):
            return False
        recovery.add(opening, size)
        return True

    def _recovered(self, name: TopicPartition, result: Log | OSError) -> None:
        """Take a log that was opened elsewhere, unless its topic was deleted meanwhile."""
        topic = self._metadata.image.topic(name.topic)
        home = self._home_of.get(name)
        if topic is None or home is None or name in self._leaving:
            return
        try:
            if isinstance(result, OSError):
                raise result
            home.directory.adopt_log(name, topic.id, result)
        except OSError as error:
            home.volume.failed(error)
            self._put_off[name] = self._clock.monotonic() + RECOVERY_RETRY_SECONDS
            return
        self._put_off.pop(name, None)
        result.config = self._metadata.topic_config(name.topic)
        self._begin(name, topic, result, home)

    def _directory_of(self, facts: PartitionImage) -> UUID | None:
        """Return the log directory that the metadata name for a partition of this node."""
        places = zip(facts.replicas, facts.directories, strict=False)
        return next((directory for replica, directory in places if replica == self._node_id), None)

    def _home_for(self, name: TopicPartition, facts: PartitionImage) -> Home:
        """Return the directory in which a partition without a folder begins; one whose directory is away does not."""
        if (torn := self._torn.get(name)) is not None:
            raise Refusal(ErrorCode.KAFKA_STORAGE_ERROR, torn)
        directory = self._directory_of(facts)
        home = None if directory is None else self._home_by_id.get(directory)
        if home is None:
            known = "" if directory in (None, LOST_DIRECTORY) else f" {encode_uuid(directory)}"
            message = f"{name} lies in the log directory{known} that is away; mount it and restart the node"
            raise Refusal(ErrorCode.KAFKA_STORAGE_ERROR, message)
        return home

    def _choose(self, name: TopicPartition, homes: list[Home]) -> bool:
        """Take the one of several folders that the metadata name, and leave the others; False where they name none."""
        topic = self._metadata.image.topic(name.topic)
        assert topic is not None
        known = self._home_by_id.get(self._directory_of(topic.partition(name.partition)) or LOST_DIRECTORY)
        folders = " and ".join(f"{home.directory.folder}/{name}" for home in homes)
        if known in homes:
            homes.insert(0, known)
            detail = f"there are {folders}; that in {known.directory.folder} is used: move the others away"
        else:
            detail = (
                f"there are {folders}, and nothing says which one counts: move all but one away and restart the node"
            )
            self._torn[name] = detail
        self._log.error("partition has several folders", partition=str(name), detail=detail)
        return known in homes

    def _tell_what_was_found(self, name: TopicPartition, log: Log) -> None:
        if log.bytes_cut:
            self._log.warning(
                "torn end of log cut off", partition=str(name), bytes=log.bytes_cut, log_end_offset=log.log_end_offset
            )

    # -- following the metadata

    def _follow(self, delta: MetadataDelta) -> None:
        """Bring the partitions in step with a change."""
        for topic in delta.deleted:
            self._delete(topic)
        for topic in delta.changed:
            self._renew_epochs(topic)
        affected = self._open.values() if delta.nodes_configured else self._partitions_of(delta.configured)
        for partition in affected:
            partition.log.config = self._metadata.topic_config(partition.name.topic)

    def _partitions_of(self, topics: Sequence[TopicImage]) -> list[Partition]:
        return [
            partition
            for topic in topics
            for index in range(topic.partition_count)
            if (partition := self._open.get((topic.name, index))) is not None
        ]

    def _renew_epochs(self, topic: TopicImage) -> None:
        for facts in topic.partitions:
            partition = self._open.get((topic.name, facts.index))
            if partition is not None:
                partition.leader_epoch = facts.leader_epoch

    def _delete(self, topic: TopicImage) -> None:
        names = [TopicPartition(topic.name, index) for index in range(topic.partition_count)]
        partitions = [partition for name in names if (partition := self._open.pop(name, None)) is not None]
        for partition in partitions:
            del self._open_by_id[topic.id.bytes, partition.name.partition]
            partition.remove()
        for name in names:
            self._put_off.pop(name, None)
            self._torn.pop(name, None)
        # What is leaving already was not opened again: the topic was deleted twice before its first folder was gone.
        there = [name for name in names if name in self._home_of and name not in self._leaving]
        if there:
            self._leaving.update(there)
            self._run(self._delete_folders(there, partitions))

    async def _delete_folders(self, names: list[TopicPartition], partitions: list[Partition]) -> None:
        for partition in partitions:
            await self._home_of[partition.name].flusher.settled(partition)
        for name in names:
            await self._recoveries[self._home_of[name]].settled(name)
        for home in self._homes:
            here = [name for name in names if self._home_of[name] is home]
            if here and await self._delete_folders_of(home, here):
                for name in here:
                    del self._home_of[name]
                    self._leaving.discard(name)

    async def _delete_folders_of(self, home: Home, names: list[TopicPartition]) -> bool:
        """Rename the folders, trying again while the disk is full: a new topic of that name must not find them.

        False where they stay until the next start, which tells them by the topic's id.
        """
        while True:
            try:
                await to_its_end(self._workers.run(home.directory.delete_logs(names, self._random)))
                await self._write_forgotten(home)
                return True
            except OSError as error:
                home.volume.failed(error)
            if home.volume.offline or self.stopping:
                return False
            await asyncio.sleep(_TRY_AGAIN_SECONDS)

    async def _write_forgotten(self, home: Home) -> None:
        """Write the checkpoints, beside the loop, from which a partition was dropped: who creates it again need not."""
        async with self._checkpointing:
            if home.directory.has_forgotten and not home.volume.offline:
                await self._checkpoint(home)

    async def _remove_folders(self, home: Home, folders: list[str]) -> None:
        try:
            await self._workers.run(lambda: home.directory.remove_deleted(folders))
        except FileNotFoundError:
            pass  # an earlier round was still at it
        except OSError as error:
            self._log.warning("folders of deleted partitions could not be removed", detail=str(error))

    def _high_watermarks(self, home: Home) -> dict[TopicPartition, Offset]:
        return {
            partition.name: partition.high_watermark
            for partition in self._open.values()
            if self._home_of.get(partition.name) is home
        }

    def _run(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._removals.add(task)
        task.add_done_callback(self._removals.discard)
