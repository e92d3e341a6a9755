"""What a node does by itself from time to time: retention, checkpoints, flushing by time, looking at the disk.

Each task has its own period and runs on the loop in small steps; what waits for the medium goes to a worker. A task
that fails because of the disk takes that directory offline, like any other write.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from riverlog.log.segments.log_folder import LOG_SUFFIX, path_of
from riverlog.model.errors import Refusal
from riverlog.model.ports import Clock
from riverlog.model.settings import NodeSettings
from riverlog.observe.containment import contained
from riverlog.observe.logging import get_logger
from riverlog.partitions.directory_checkpoints import DirectoryCheckpoints
from riverlog.partitions.partition import Partition
from riverlog.partitions.registry import PartitionRegistry
from riverlog.partitions.removal import PartitionRemoval
from riverlog.partitions.replicas import Replicas

_TICK_SECONDS: Final = 1.0
_PARTITIONS_PER_STEP: Final = 16
_DAMAGE_ADVICE: Final = (
    "these offsets are refused, all others served; stop the node, put the file back from a copy and remove the "
    "file quarantine beside it, or let them go by DeleteRecords or retention; and look at the disk"
)


class Upkeep:
    """The periodic work over all partitions of a node. Settings are asked for: some change while it runs."""

    def __init__(
        self,
        registry: PartitionRegistry,
        replicas: Replicas,
        checkpoints: DirectoryCheckpoints,
        removal: PartitionRemoval,
        settings: Callable[[], NodeSettings],
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._replicas = replicas
        self._checkpoints = checkpoints
        self._removal = removal
        self._settings = settings
        self._clock = clock
        self._log = get_logger("riverlog.upkeep")

    async def run(self) -> None:
        """Open what is not open yet, then keep everything in order, for ever."""
        await self._open_all()
        settings = self._settings()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._every(_TICK_SECONDS, self._by_time))
            tasks.create_task(self._every(_TICK_SECONDS, self._report_damage))
            tasks.create_task(self._retain(settings.log_retention_check_interval_ms / 1000))
            tasks.create_task(self._checkpoint(settings.log_flush_offset_checkpoint_interval_ms / 1000))
            tasks.create_task(self._look_at_disks())

    async def _open_all(self) -> None:
        """Open the partitions that nobody has asked for yet, one at a time, so that requests come first."""
        for name in self._registry.unopened():
            try:
                self._replicas.open_unasked(name)
            except Refusal:
                pass  # the disk was in the way, and was logged; whoever asks for the partition tries again
            except Exception as error:
                contained(f"opening of {name}", error)
            await asyncio.sleep(0)

    async def _every(self, seconds: float, work: Callable[[Partition], None]) -> None:
        """Do the work for every open partition, a few per turn of the loop, once per period."""
        while True:
            await asyncio.sleep(seconds)
            for done, partition in enumerate(self._registry.list_opened()):
                try:
                    work(partition)
                except Refusal:
                    pass  # the disk was in the way, and was logged; partitions on others go on
                except Exception as error:
                    contained(f"upkeep of {partition.name}", error)
                if done % _PARTITIONS_PER_STEP == _PARTITIONS_PER_STEP - 1:
                    await asyncio.sleep(0)

    def _by_time(self, partition: Partition) -> None:
        uptime_ms = round(self._clock.monotonic() * 1000)
        partition.flush_if_due(uptime_ms=uptime_ms)
        partition.remove_deleted(uptime_ms=uptime_ms)

    def _report_damage(self, partition: Partition) -> None:
        for base_offset, flaw in partition.take_damage():
            self._log.error(
                "damage found",
                partition=str(partition.name),
                file=path_of(partition.log.folder, base_offset, LOG_SUFFIX),
                position=flaw.position,
                first_offset=flaw.first_offset,
                last_offset=flaw.next_offset - 1,
                detail=flaw.reason,
                advice=_DAMAGE_ADVICE,
            )

    async def _retain(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            for partition in self._registry.list_opened():
                try:
                    await self._retain_one(partition)
                except Refusal:
                    pass  # the disk was in the way, or the partition has been deleted meanwhile
                except Exception as error:
                    contained(f"retention of {partition.name}", error)
                await asyncio.sleep(0)

    async def _retain_one(self, partition: Partition) -> None:
        now_ms = self._clock.wall_ms()
        silent_since_ms = now_ms - self._settings().producer_id_expiration_ms
        for deleted in await partition.retain(now_ms=now_ms, producers_older_than_ms=silent_since_ms):
            self._log.info(
                "segment deleted",
                partition=str(partition.name),
                base_offset=deleted.base_offset,
                bytes=deleted.size,
                reason=deleted.reason.value,
                **({"damage": "; ".join(deleted.damage)} if deleted.damage else {}),
            )

    async def _checkpoint(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await self._checkpoints.write()
            except Exception as error:
                contained("checkpoints of the log directories", error)

    async def _look_at_disks(self) -> None:
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            try:
                for directory in self._registry.directories:
                    directory.health.look()
                self._removal.remove_deleted()
            except Exception as error:
                contained("look at the disks", error)
