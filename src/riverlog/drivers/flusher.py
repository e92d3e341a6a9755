"""Group commit: bring appended batches to the medium, many requests with one flush.

Each partition has at most one flush under way. Whatever is appended meanwhile shares the next one, so the
number of flushes follows the disk and not the number of requests. A failed flush is never tried again: the
directory goes offline.
"""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from riverlog.drivers.volume import Volume
from riverlog.log.sync import SyncPlan
from riverlog.model.errors import InvariantBroken
from riverlog.model.limits import FLUSHES_UNDER_WAY_MAX
from riverlog.model.ports import Clock, Workers
from riverlog.observe.containment import contained
from riverlog.observe.stats import NodeStats

if TYPE_CHECKING:
    from riverlog.drivers.partition import Partition


class Flusher:
    """Flushes the partitions of one log directory."""

    def __init__(self, workers: Workers, volume: Volume, clock: Clock, stats: NodeStats) -> None:
        self._workers = workers
        self._volume = volume
        self._clock = clock
        self._stats = stats
        self._wanted: set[Partition] = set()
        self._under_way: dict[Partition, asyncio.Task[None]] = {}
        self._turns = asyncio.Semaphore(FLUSHES_UNDER_WAY_MAX)  # a plan holds files open until it is carried out
        self._failed = False
        """A flush has failed: the system tells it once, so that none that ends after it can be trusted, nor one that
        ends after the directory went offline for another reason."""

    def flush(self, partition: "Partition") -> None:
        """See that everything appended to this partition so far reaches the medium soon."""
        if partition in self._under_way:
            self._wanted.add(partition)
        else:
            self._under_way[partition] = asyncio.get_running_loop().create_task(self._rounds(partition))

    async def settled(self, partition: "Partition") -> None:
        """Wait until no flush of this partition is under way."""
        while partition in self._under_way:
            await asyncio.wait([self._under_way[partition]])

    async def drain(self) -> None:
        """Wait until nothing is under way."""
        while self._under_way:
            await asyncio.wait(set(self._under_way.values()))

    def _is_distrusted(self) -> bool:
        """Tell whether no flush counts any more; of a failed one the loop may have yet to hear."""
        return self._failed or self._volume.offline

    def _plan(self, partition: "Partition") -> SyncPlan:
        """Gather what is to be flushed; files of which that fails are not gathered again."""
        try:
            return partition.log.pending_sync()
        except OSError:
            self._failed = True
            raise

    def _run(self, plan: SyncPlan) -> None:
        try:
            plan.run()
        except OSError:
            self._failed = True
            raise

    async def _rounds(self, partition: "Partition") -> None:
        try:
            while True:
                if self._is_distrusted():
                    return
                try:
                    async with self._turns:
                        if self._is_distrusted():
                            return
                        self._wanted.discard(partition)
                        began = self._clock.monotonic()
                        plan = self._plan(partition)
                        await self._workers.run(partial(self._run, plan))
                except OSError as error:
                    self._volume.fail(f"a flush failed ({error})")
                    return
                if self._is_distrusted():
                    return
                self._stats.flushes.observe(self._clock.monotonic() - began)
                partition.log.synced(plan)
                partition.flushed()
                if partition not in self._wanted:
                    return
        except Exception as mistake:  # of our own: nobody knows any more what is on the medium
            broken = InvariantBroken(f"{partition.name} could not be flushed: {mistake!r}")
            broken.__cause__ = mistake
            contained("flush", broken)
        finally:
            self._wanted.discard(partition)
            del self._under_way[partition]
