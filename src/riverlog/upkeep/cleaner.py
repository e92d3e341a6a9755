"""Compaction at work: finds the dirtiest compacted log, has it cleaned elsewhere, and takes the results over.

One log at a time. Reading and writing records happens in another process within a bound on memory and, if set, on
bytes per second; the loop only looks for work and renames files. A log that cannot be cleaned is named once and
left alone until the node starts again.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import Final

from riverlog.log.compaction.cleaning import CleanedGroup, clean, find_dirt, plan_cleaning
from riverlog.log.compaction.policy import DirtyRange
from riverlog.log.compaction.swap import begin_swap, remove_cleaned
from riverlog.model.disk_errors import DiskTrouble, judge, may_pass
from riverlog.model.errors import Refusal
from riverlog.model.ports import Clock, Disk, Processes, Workers
from riverlog.model.settings import NodeSettings
from riverlog.observe.containment import contained
from riverlog.observe.logging import get_logger
from riverlog.partitions.in_process_work import to_its_end
from riverlog.partitions.partition import Partition
from riverlog.partitions.registry import NodeDirectory, PartitionRegistry
from riverlog.upkeep.limits import SWAP_TRIES_MAX

_PARTITIONS_PER_STEP: Final = 16
_TRY_AGAIN_SECONDS: Final = 0.1


class Cleaner:
    """Compacts the logs of a node. Settings are asked for: some change while it runs."""

    def __init__(
        self,
        registry: PartitionRegistry,
        settings: Callable[[], NodeSettings],
        *,
        clock: Clock,
        disk: Disk,
        workers: Workers,
        processes: Processes,
        pause: Callable[[float], None],
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._clock = clock
        self._disk = disk
        self._workers = workers
        self._processes = processes
        self._pause = pause
        self._uncleanable: set[Partition] = set()
        self._log = get_logger("riverlog.cleaner")

    async def run(self) -> None:
        """Clean whatever is worth it, for ever."""
        while self._settings().log_cleaner_enable:
            await asyncio.sleep(self._settings().log_cleaner_backoff_ms / 1000)
            while await self.clean_dirtiest():
                pass

    async def clean_dirtiest(self) -> bool:
        """Clean the log that needs it most; return whether there was one."""
        self._uncleanable.intersection_update(self._registry.list_opened())
        dirtiest: tuple[tuple[bool, float], Partition, NodeDirectory, DirtyRange] | None = None
        for done, partition in enumerate(self._registry.list_opened()):
            if done % _PARTITIONS_PER_STEP == _PARTITIONS_PER_STEP - 1:
                await asyncio.sleep(0)
            found = await self._examine(partition)
            if found is not None:
                directory, dirt = found
                need = dirt.overdue, dirt.ratio
                if dirtiest is None or need > dirtiest[0]:
                    dirtiest = need, partition, directory, dirt
        if dirtiest is None:
            return False
        _, partition, directory, dirt = dirtiest
        try:
            await self._clean(partition, directory, dirt)
        except (ChildProcessError, FileNotFoundError) as error:  # killed, or overtaken by retention or deletion
            if not partition.removed:
                self._log.warning("compaction broke off", partition=str(partition.name), detail=str(error))
            return False
        except OSError as error:
            directory.health.failed(error)
            return False
        except Refusal as refusal:
            if partition.removed:  # its files may have been another one's
                return False
            self._uncleanable.add(partition)
            self._log.error("log cannot be compacted", partition=str(partition.name), detail=refusal.message)
        except Exception as error:
            self._uncleanable.add(partition)
            contained(f"compaction of {partition.name}", error)
        return True

    async def _examine(self, partition: Partition) -> tuple[NodeDirectory, DirtyRange] | None:
        """Look at one partition; None where there is nothing to do."""
        log, directory = partition.log, self._registry.directory_of.get(partition.name)
        if not log.config.cleanup_compact or partition in self._uncleanable or directory is None:
            return None
        try:
            await partition.load_segments()
            if not partition.keeps_files:
                return None
            dirt = find_dirt(
                log,
                cleaned_offset=directory.logs.cleaned_offset(partition.name),
                upto=partition.last_stable_offset,
                now_ms=self._clock.wall_ms(),
            )
        except OSError as error:
            partition.check_files(error)
            return None
        except Refusal:  # the disk is in the way
            return None
        except Exception as error:
            self._uncleanable.add(partition)
            contained(f"compaction of {partition.name}", error)
            return None
        return (directory, dirt) if dirt.is_due(log.config) else None

    async def _clean(self, partition: Partition, directory: NodeDirectory, dirt: DirtyRange) -> None:
        """Clean one log, group by group; whatever is left over of a run that breaks off is removed."""
        while not partition.log.sync_planner.closed_is_durable:
            directory.flusher.flush(partition)
            await directory.flusher.settled(partition)
            if not partition.keeps_files:
                return
        settings = self._settings()
        cleaning = plan_cleaning(
            partition.log,
            dirt,
            now_ms=self._clock.wall_ms(),
            keys_bytes_max=settings.log_cleaner_dedupe_buffer_size,
            bytes_per_second_max=settings.log_cleaner_io_max_bytes_per_second,
        )
        bytes_before = bytes_after = 0
        clean_upto = dirt.first_dirty_offset
        try:
            async with aclosing(self._processes.stream(partial(clean, self._disk, cleaning, self._pause))) as groups:
                async for group in groups:
                    # Once begun it runs to its end, even while the node stops: no log is closed in the middle of it.
                    if group.size is not None and not await to_its_end(self._swap(partition, directory, group)):
                        return
                    bytes_before += group.size_before
                    bytes_after += group.size_before if group.size is None else group.size
                    clean_upto = group.clean_upto
        finally:
            remove_cleaned(self._disk, cleaning.folder, (segment.base_offset for segment in cleaning.segments))
        if partition.removed:  # one of the same name may have begun
            return
        directory.logs.note_cleaned(partition.name, clean_upto)
        self._log.info(
            "log compacted",
            partition=str(partition.name),
            upto=clean_upto,
            bytes_before=bytes_before,
            bytes_after=bytes_after,
        )

    async def _swap(self, partition: Partition, directory: NodeDirectory, group: CleanedGroup) -> bool:
        """Put the cleaned segment into its place; False where that place has changed meanwhile."""
        log = partition.log
        if not partition.keeps_files:
            return False
        swap = begin_swap(log, group.replaced)
        if swap is None:
            return False
        return (
            await self._done(swap.announce, partition, directory, beside=True)
            and await self._done(swap.take_over, partition, directory, beside=False)
            and await self._done(swap.confirm, partition, directory, beside=True)
            and await self._done(swap.finish, partition, directory, beside=False)
        )

    async def _done(
        self, step: Callable[[], None], partition: Partition, directory: NodeDirectory, *, beside: bool
    ) -> bool:
        """Do one step of a swap, and repeat it while something is in the way that may pass: there is no way back."""
        tries_left = SWAP_TRIES_MAX
        while partition.keeps_files:
            try:
                if beside:
                    await self._workers.run(step)
                else:
                    step()
                return True
            except OSError as error:
                if partition.removed and judge(error) is not DiskTrouble.FAILED:
                    break
                if not may_pass(error) or self._registry.stopping or not tries_left:
                    directory.health.fail(f"a compacted segment could not be put into its place ({error})")
                    break
                directory.health.failed(error)
            tries_left -= 1
            await asyncio.sleep(_TRY_AGAIN_SECONDS)
        return False
