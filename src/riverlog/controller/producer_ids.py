"""The producer ids of a node: taken from the controller a block at a time, given out one by one."""

import asyncio
from collections import deque

from riverlog.controller.metadata_requests import MetadataRequests
from riverlog.model.ids import ProducerId


class ProducerIds:
    """Ids that no producer ever had."""

    def __init__(self, requests: MetadataRequests) -> None:
        self._requests = requests
        self._ids: deque[ProducerId] = deque()
        self._next_block: asyncio.Future[None] | None = None

    async def next(self) -> ProducerId:
        """Return the next id, with a new block where the last one is used up."""
        while not self._ids:
            if self._next_block is None:
                self._next_block = asyncio.ensure_future(self._take_block())
            # Many may wait for the same block, and one of them may be cancelled.
            await asyncio.shield(self._next_block)
        return self._ids.popleft()

    async def _take_block(self) -> None:
        try:
            block = await self._requests.allocate_producer_ids()
            self._ids.extend(ProducerId(block.first + each) for each in range(block.count))
        finally:
            self._next_block = None
