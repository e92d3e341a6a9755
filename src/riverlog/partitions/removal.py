"""The removal of deleted topics: their partitions are gone for clients at once, their folders follow.

A folder is renamed when nobody is at work on it, and removed some time later.
"""

import asyncio
from collections.abc import Coroutine
from typing import Final

from riverlog.metadata.image import TopicImage
from riverlog.model.ids import TopicPartition
from riverlog.model.ports import Random, Workers
from riverlog.observe.logging import get_logger
from riverlog.partitions.directory_checkpoints import DirectoryCheckpoints
from riverlog.partitions.in_process_work import to_its_end
from riverlog.partitions.partition import Partition
from riverlog.partitions.registry import NodeDirectory, PartitionRegistry

_TRY_AGAIN_SECONDS: Final = 0.1


class PartitionRemoval:
    """Removes the partitions of deleted topics from this node."""

    def __init__(
        self, registry: PartitionRegistry, checkpoints: DirectoryCheckpoints, workers: Workers, random: Random
    ) -> None:
        self._registry = registry
        self._checkpoints = checkpoints
        self._workers = workers
        self._random = random
        self._under_way: set[asyncio.Task[None]] = set()
        self._log = get_logger("riverlog.removal")

    def delete(self, topic: TopicImage) -> None:
        """Refuse whoever comes for a topic's partitions from now on, and remove their folders."""
        registry = self._registry
        names = [TopicPartition(topic.name, index) for index in range(topic.partition_count)]
        partitions = [partition for name in names if (partition := registry.opened.pop(name, None)) is not None]
        for partition in partitions:
            partition.remove()
        # What is leaving already was not opened again: the topic was deleted twice before its first folder was gone.
        there = [name for name in names if name in registry.directory_of and name not in registry.leaving]
        if there:
            registry.leaving.update(there)
            self._run(self._delete_folders(there, partitions))

    async def finish(self) -> None:
        """Wait until no removal is under way."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    def remove_deleted(self) -> None:
        """Remove what deleted partitions left behind in the directories."""
        for directory in self._registry.directories:
            if directory.health.offline:
                continue
            try:
                folders = directory.logs.deleted_folders()
            except OSError as error:
                directory.health.failed(error)
                continue
            if folders:
                self._run(self._remove_folders(directory, folders))

    async def _delete_folders(self, names: list[TopicPartition], partitions: list[Partition]) -> None:
        registry = self._registry
        for partition in partitions:
            await registry.directory_of[partition.name].flusher.settled(partition)
        for name in names:
            await registry.directory_of[name].recovery.settled(name)
        for directory in registry.directories:
            here = [name for name in names if registry.directory_of[name] is directory]
            if here and await self._delete_folders_of(directory, here):
                for name in here:
                    del registry.directory_of[name]
                    registry.leaving.discard(name)

    async def _delete_folders_of(self, directory: NodeDirectory, names: list[TopicPartition]) -> bool:
        """Rename the folders, trying again while the disk is full: a new topic of that name must not find them.

        False where they stay until the next start, which knows them by the topic's id.
        """
        while True:
            try:
                await to_its_end(self._workers.run(directory.logs.delete_logs(names, self._random)))
                await self._checkpoints.write_forgotten(directory)
                return True
            except OSError as error:
                directory.health.failed(error)
            if directory.health.offline or self._registry.stopping:
                return False
            await asyncio.sleep(_TRY_AGAIN_SECONDS)

    async def _remove_folders(self, directory: NodeDirectory, folders: list[str]) -> None:
        try:
            await self._workers.run(lambda: directory.logs.remove_deleted(folders))
        except FileNotFoundError:
            pass  # an earlier round was still at it
        except OSError as error:
            self._log.warning("folders of deleted partitions could not be removed", detail=str(error))

    def _run(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
