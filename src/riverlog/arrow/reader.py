"""Fetches ranges of partitions, as bytes: several at once, ahead of whoever takes them, within a bound.

Chunks of a partition come in order and together cover its range; partitions come as their bytes do. Leaders that move
are found again. Where records were deleted meanwhile, reading goes on behind them, or OffsetOutOfRange says so.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self

from riverlog.arrow.columns import Cut
from riverlog.client.consumer.fetched_records import AssignedPartition, Chunk
from riverlog.client.consumer.fetcher import Fetcher, FetchingRules
from riverlog.client.lifetime import Startable
from riverlog.client.network.cluster import Cluster
from riverlog.client.offsets import IsolationLevel
from riverlog.model.ids import TopicPartition

PARTITION_BYTES_MAX: Final = 8 * 1024 * 1024
PREFETCH_BYTES_MAX: Final = 64 * 1024 * 1024
FETCH_BYTES_MAX: Final = 32 * 1024 * 1024
WAIT_MS: Final = 500


class TakenChunk(NamedTuple):
    """A chunk, and what of it is wanted."""

    partition: TopicPartition
    cut: Cut
    chunk: Chunk


class RangeReader(Startable):
    """Reads what `want` names. Use it as an async context manager."""

    def __init__(
        self,
        bootstrap: str,
        *,
        isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
        skip_deleted: bool = True,
        partition_bytes_max: int = PARTITION_BYTES_MAX,
        prefetch_bytes_max: int = PREFETCH_BYTES_MAX,
        **client: Any,
    ) -> None:
        self.cluster = Cluster(bootstrap, **{"client_id": "riverlog-scan", **client})
        rules = FetchingRules(
            isolation=isolation,
            reset="earliest" if skip_deleted else None,
            wait_ms_max=WAIT_MS,
            fetch_bytes_min=1,
            fetch_bytes_max=FETCH_BYTES_MAX,
            partition_bytes_max=partition_bytes_max,
            prefetch_bytes_max=prefetch_bytes_max,
        )
        self._arrived = asyncio.Event()
        self._fetcher = Fetcher(self.cluster, rules, self._arrived.set)
        self._cuts: dict[TopicPartition, Cut] = {}
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> Self:
        """Reach the cluster; raise Unreachable where that fails."""
        async with self.cluster.starting():
            pass
        self._running = asyncio.create_task(self._fetcher.run())
        return self

    async def close(self) -> None:
        """Stop fetching and close all connections."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        await self.cluster.close()

    def want(self, cuts: Mapping[TopicPartition, Cut]) -> None:
        """Begin to fetch these ranges, and no others."""
        self._cuts = {partition: cut for partition, cut in cuts.items() if cut.from_offset < cut.until_offset}
        self._fetcher.assigned = {}
        for partition, cut in self._cuts.items():
            state = self._fetcher.assigned[partition] = AssignedPartition(partition)
            state.until_offset = cut.until_offset
            state.jump(cut.from_offset)
        self.cluster.watch({partition.topic for partition in cuts})
        self._fetcher.wake()

    async def next_chunk(self) -> TakenChunk | None:
        """Wait for a chunk of any partition; None once all ranges are read."""
        while self._fetcher.assigned:
            self._arrived.clear()
            for state in list(self._fetcher.assigned.values()):
                if state.problem is not None:
                    raise state.problem
                if (taken := self._take(state)) is not None:
                    return taken
            if self._fetcher.assigned:
                await self._wait()
        return None

    def _take(self, state: AssignedPartition) -> TakenChunk | None:
        """Take a partition's next chunk, and drop the partition where its range ends; others come first then."""
        partition, cut = state.partition, self._cuts[state.partition]
        chunk = state.chunks.popleft() if state.chunks else None
        if chunk is not None:
            assert state.position is not None, "what was fetched was fetched from somewhere"
            cut = cut._replace(from_offset=state.position)  # behind what was deleted, perhaps out of this very batch
            state.buffered_bytes -= chunk.size
            state.position = chunk.next_offset
        del self._fetcher.assigned[partition]
        if state.position is None or state.position < cut.until_offset:
            self._fetcher.assigned[partition] = state
        self._fetcher.wake()
        return None if chunk is None else TakenChunk(partition, cut, chunk)

    async def _wait(self) -> None:
        assert self._running is not None, "the reader is started"
        if self._running.done():
            self._running.result()
        await self._arrived.wait()
