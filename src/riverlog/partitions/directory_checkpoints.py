"""The checkpoints of the log directories: how far each log is flushed, where it starts, what of it is committed.

They are written beside the loop from time to time, and a last time when the node stops and closes its logs.
"""

import asyncio
from functools import partial

from riverlog.model.ports import Workers
from riverlog.partitions.in_process_work import to_its_end
from riverlog.partitions.limits import CHECKPOINT_TRIES_MAX, LOGS_CLOSING_MAX
from riverlog.partitions.registry import NodeDirectory, PartitionRegistry


class DirectoryCheckpoints:
    """Writes the checkpoints of all directories, one writer at a time, and closes the directories."""

    def __init__(self, registry: PartitionRegistry, workers: Workers) -> None:
        self._registry = registry
        self._workers = workers
        self._writing = asyncio.Lock()

    async def write(self) -> list[NodeDirectory]:
        """Write all checkpoints durably; return the directories where that was done."""
        async with self._writing:
            directories = self._registry.directories
            return [each for each in directories if not each.health.offline and await self._write(each)]

    async def write_forgotten(self, directory: NodeDirectory) -> None:
        """Write the checkpoints from which a partition was dropped: creating it again then need not wait."""
        async with self._writing:
            if directory.logs.has_forgotten and not directory.health.offline:
                await self._write(directory)

    async def _write(self, directory: NodeDirectory) -> bool:
        try:
            for _ in range(CHECKPOINT_TRIES_MAX):
                plan = directory.logs.pending_checkpoint(self._registry.high_watermarks(directory))
                await to_its_end(self._workers.run(plan.run))  # closing writes to the same files
                if directory.logs.checkpointed(plan):
                    return True
        except OSError as error:
            directory.health.failed(error)
        return False

    async def close(self) -> None:
        """Flush and close every log, write the last checkpoints, and mark each directory as closed cleanly.

        A directory that failed is left as it is: the next start recovers it.
        """
        registry = self._registry
        for directory in registry.directories:
            await directory.flusher.drain()
            if directory.health.offline or not all(each.keeps_files for each in registry.opened_in(directory)):
                directory.logs.abandon()
                continue
            all_recovered = registry.is_complete and not any(
                registry.directory_of[name] is directory for name in registry.unopened()
            )
            close = partial(directory.logs.close, registry.high_watermarks(directory), all_recovered=all_recovered)
            try:
                await self._close_logs(directory)
                await self._workers.run(close)
            except OSError as error:
                directory.health.failed(error)
                directory.logs.abandon()

    async def _close_logs(self, directory: NodeDirectory) -> None:
        """Flush and close the logs of a directory, a few at a time: flushes that overlap share the disk's work."""
        closing = directory.logs.closing()

        async def lane() -> None:
            for log, plan in closing:
                await self._workers.run(plan.run)
                log.closed(plan)

        lanes = await asyncio.gather(*(lane() for _ in range(LOGS_CLOSING_MAX)), return_exceptions=True)
        for failure in filter(None, lanes):
            raise failure
