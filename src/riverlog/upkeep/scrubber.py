"""The scrubber at work: has all closed segments read again from time to time, and quarantines what has rotted.

Reading happens in another process, at a bounded number of bytes per second. The loop only lists segments, a bounded
number of them at a time, and notes what was found; the upkeep logs it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from functools import partial
from typing import Final

from riverlog.log.retention import SegmentFacts
from riverlog.log.scrubbing import ScrubbedSegment, scrub
from riverlog.model.errors import Refusal
from riverlog.model.ports import Clock, Disk, Processes
from riverlog.model.settings import NodeSettings
from riverlog.observe.containment import contained
from riverlog.observe.logging import get_logger
from riverlog.observe.stats import ScrubStats
from riverlog.partitions.partition import Partition
from riverlog.partitions.registry import PartitionRegistry
from riverlog.upkeep.limits import SEGMENTS_PER_SCRUB_MAX

_FIRST_REST_SECONDS: Final = 600.0
"""A node that was just started has more urgent work."""


class Scrubber:
    """Examines the closed segments of a node, over and over. Settings are asked for: some change while it runs."""

    def __init__(
        self,
        registry: PartitionRegistry,
        settings: Callable[[], NodeSettings],
        *,
        stats: ScrubStats,
        clock: Clock,
        disk: Disk,
        processes: Processes,
        pause: Callable[[float], None],
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._stats = stats
        self._clock = clock
        self._disk = disk
        self._processes = processes
        self._pause = pause
        self._log = get_logger("riverlog.scrubber")

    async def run(self) -> None:
        """Scrub everything, rest, and begin again, for ever; do nothing if the interval is negative."""
        rest = self._settings().log_scrub_interval_ms / 1000
        if rest < 0:
            return
        await asyncio.sleep(min(rest, _FIRST_REST_SECONDS))
        while True:
            try:
                await self.scrub_all()
            except ChildProcessError as error:
                self._log.warning("scrubbing broke off", detail=str(error))
            except Exception as error:
                contained("scrubbing", error)
            await asyncio.sleep(rest)

    async def scrub_all(self) -> None:
        """Examine every closed segment once."""
        bytes_before = self._stats.bytes
        part: list[tuple[Partition, SegmentFacts]] = []
        async for each in self._closed_segments():
            part.append(each)
            if len(part) == SEGMENTS_PER_SCRUB_MAX:
                await self._scrub(part)
                part = []
        await self._scrub(part)
        self._stats.completed_ms = self._clock.wall_ms()
        self._log.info("all closed segments scrubbed", bytes=self._stats.bytes - bytes_before)

    async def _scrub(self, part: list[tuple[Partition, SegmentFacts]]) -> None:
        partitions = {partition.log.folder: partition for partition, _ in part}
        work = partial(
            scrub,
            self._disk,
            [(partition.log.folder, segment) for partition, segment in part],
            bytes_per_second_max=self._settings().log_scrub_io_max_bytes_per_second,
            pause=self._pause,
        )
        async with aclosing(self._processes.stream(work)) as results:
            async for scrubbed in results:
                self._stats.bytes += scrubbed.segment.size
                self._note(partitions[scrubbed.folder], scrubbed)

    def _note(self, partition: Partition, scrubbed: ScrubbedSegment) -> None:
        if partition.removed:  # what was read may belong to another one of this name
            return
        if scrubbed.error:
            self._log.error(
                "segment cannot be read",
                partition=str(partition.name),
                base_offset=scrubbed.segment.base_offset,
                detail=scrubbed.error,
            )
        if scrubbed.flaws:
            try:
                partition.log.note_flaws(scrubbed.segment, scrubbed.flaws)
            except OSError as error:
                partition.check_files(error)

    async def _closed_segments(self) -> AsyncIterator[tuple[Partition, SegmentFacts]]:
        """List the segments to read, as they are when it is their turn."""
        for partition in self._registry.list_opened():
            if not partition.keeps_files:
                continue
            try:
                await partition.load_segments()
                segments = partition.log.segment_facts()[:-1]
            except OSError as error:
                partition.check_files(error)
                continue
            except Refusal:
                continue
            for segment in segments:
                if segment.size and segment.next_offset <= partition.log.flushed_offset:
                    yield partition, segment
