"""Group commit: bring appended batches to the medium, many requests with one flush.

Each partition has at most one flush under way. Whatever is appended meanwhile shares the next one, so the
number of flushes follows the disk and not the number of requests. A failed flush is never tried again: the
directory goes offline. One that could not begin, for want of descriptors or memory, has not failed: it begins later.
"""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from riverlog.log.sync import SyncPlan
from riverlog.model.disk_errors import DiskTrouble, judge
from riverlog.model.errors import InvariantBroken
from riverlog.model.ports import Clock, Workers
from riverlog.observe.containment import contained
from riverlog.observe.stats import NodeStats
from riverlog.partitions.directory_health import DirectoryHealth
from riverlog.partitions.limits import FLUSH_TRIES_AT_STOP_MAX, FLUSHES_UNDER_WAY_MAX

if TYPE_CHECKING:
    from riverlog.partitions.replica import Replica


_TRY_AGAIN_SECONDS: Final = 0.1


class Flusher:
    """Flushes the partitions of one log directory."""

    def __init__(self, workers: Workers, health: DirectoryHealth, clock: Clock, stats: NodeStats) -> None:
        self._workers = workers
        self._health = health
        self._clock = clock
        self._stats = stats
        self._wanted: set[Replica] = set()
        self._under_way: dict[Replica, asyncio.Task[None]] = {}
        self._turns = asyncio.Semaphore(FLUSHES_UNDER_WAY_MAX)  # a plan holds files open until it is carried out
        self._tries_left: int | None = None  # for flushes that cannot begin, once the node stops
        self._failed = False
        """A flush has failed: the system tells it once, so that none that ends after it can be trusted, nor one that
        ends after the directory went offline for another reason."""

    def flush(self, partition: "Replica") -> None:
        """Begin to flush everything appended to this partition so far, unless its files are gone."""
        if partition in self._under_way:
            self._wanted.add(partition)
        elif partition.keeps_files:
            self._under_way[partition] = asyncio.get_running_loop().create_task(self._rounds(partition))

    def sync_first_name(self, partition: "Replica") -> None:
        """Begin to sync the name of its first segment; a flush that is under way does that, too."""
        if partition not in self._under_way and partition.keeps_files:
            rounds = self._rounds(partition, name_only=True)
            self._under_way[partition] = asyncio.get_running_loop().create_task(rounds)

    async def settled(self, partition: "Replica") -> None:
        """Wait until no flush of this partition is under way."""
        while partition in self._under_way:
            await asyncio.wait([self._under_way[partition]])

    async def drain(self) -> None:
        """Wait until no flush is under way: the node stops, and retries of those that cannot begin are bounded."""
        self._tries_left = FLUSH_TRIES_AT_STOP_MAX
        while self._under_way:
            await asyncio.wait(set(self._under_way.values()))

    def _is_distrusted(self) -> bool:
        """Return whether no flush counts any more; one may have failed that the loop does not know of yet."""
        return self._failed or self._health.offline

    def _run(self, plan: SyncPlan) -> None:
        try:
            plan.run()
        except OSError as error:
            self._failed |= judge(error) is DiskTrouble.FAILED
            raise

    async def _flushed(self, partition: "Replica", *, name_only: bool) -> SyncPlan | None:
        """Flush once, as soon as that can be done; None where it cannot be.

        Who cannot begin gives up its turn while it waits: what is in the way of one may be in nobody else's.
        """
        plan: SyncPlan | None = None
        while True:
            async with self._turns:
                if self._is_distrusted() or not partition.keeps_files:
                    return None
                began = self._clock.monotonic()
                try:
                    if plan is None and name_only:
                        plan = partition.log.pending_first_name()
                    elif plan is None:
                        self._wanted.discard(partition)  # what is appended from now on is for the next flush
                        plan = partition.log.pending_sync()
                    await self._workers.run(partial(self._run, plan))
                    self._stats.flushes.observe(self._clock.monotonic() - began)
                    return plan
                except OSError as error:
                    failure = error
            if not await self._may_try_again(partition, failure):
                return None

    async def _may_try_again(self, partition: "Replica", error: OSError) -> bool:
        """Wait a little where nothing was lost; otherwise take the directory, or the partition, out of service."""
        match judge(error):
            case DiskTrouble.FAILED:
                self._failed = True
                self._health.fail(f"a flush failed ({error})")
            case DiskTrouble.MISSING if partition.keeps_files:
                self._health.failed(error)
                if not self._health.offline:
                    partition.withdraw(error)
            case DiskTrouble.MISSING:
                pass  # gone with its topic
            case DiskTrouble.FULL | DiskTrouble.HINDERED:
                self._health.failed(error)
                if self._tries_left is not None:
                    self._tries_left -= 1
                    if self._tries_left < 0:
                        self._health.fail(f"the node stops before a flush could begin ({error})")
                await asyncio.sleep(_TRY_AGAIN_SECONDS)
        return not self._is_distrusted() and partition.keeps_files

    async def _rounds(self, partition: "Replica", *, name_only: bool = False) -> None:
        try:
            while True:
                plan = await self._flushed(partition, name_only=name_only)
                name_only = False
                if plan is None or self._is_distrusted():
                    return
                partition.log.synced(plan)
                partition.flushed()
                if partition not in self._wanted:
                    return
        except Exception as mistake:  # our own: nobody knows any more what is on the medium
            broken = InvariantBroken(f"{partition.name} could not be flushed: {mistake!r}")
            broken.__cause__ = mistake
            contained("flush", broken)
        finally:
            self._wanted.discard(partition)
            del self._under_way[partition]
