"""The producer ids of a node: taken from the controller a block at a time, given out one by one."""

import asyncio
from collections import deque

from riverlog.controller.controller import Controller
from riverlog.controller.limits import PRODUCER_ID_BLOCK
from riverlog.metadata.commands.producer_ids import AllocateProducerIds
from riverlog.model.ids import NodeId, ProducerId


class ProducerIds:
    """Ids that no producer ever had."""

    def __init__(self, controller: Controller, node_id: NodeId) -> None:
        self._controller = controller
        self._node_id = node_id
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
            block = await self._controller.submit(AllocateProducerIds(self._node_id, PRODUCER_ID_BLOCK))
            self._ids.extend(ProducerId(block.first + each) for each in range(block.count))
        finally:
            self._next_block = None
