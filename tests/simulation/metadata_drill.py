"""A node's metadata alone: its log, with snapshots and segments that they replace, loses power and is opened again."""

import asyncio
from copy import copy
from random import Random

from tests.support.disk import MemoryDisk
from tests.unit.drivers.metadata_node import Node, names


class MetadataDrill:
    """Topics whose creation was answered are there."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self._answered: list[str] = []
        self._created = 0

    def after_crash(self, seed: int) -> "MetadataDrill":
        """Give this drill as it would go on if the power failed now; this one knows nothing of it."""
        other = copy(self)
        other.disk = self.disk.after_crash(Random(seed))
        other._answered = list(self._answered)
        return other

    def expectations(self) -> str:
        """Tell what must be found, to compare drills by."""
        return f"{self._answered}"

    def live(self) -> None:
        """Create topics, with a snapshot now and then that takes the place of several segments and of the last one."""
        asyncio.run(self._live())

    async def _live(self) -> None:
        node = Node(self.disk)
        await node.register()
        for _ in range(2):
            for _ in range(2):
                await self._create(node)
                node.log._log.roll(0)
            await self._create(node)
            node.log.begin_snapshot(node.driver.image)
            await self._create(node)  # while it is written
            if (writing := node.log._snapshotting) is not None:
                await writing
        await node.driver.close()

    async def _create(self, node: Node) -> None:
        name = f"topic{self._created:02}"
        self._created += 1
        await node.create(name)
        self._answered.append(name)

    def aftermath(self) -> list[str]:
        """Open what was left, go on, and lose power again."""
        wrong = asyncio.run(self._look(goes_on=True))
        self.disk.crash()
        return wrong or asyncio.run(self._look(goes_on=False))

    async def _look(self, *, goes_on: bool) -> list[str]:
        node = Node(self.disk)
        found = names(node.driver.image)
        if [name for name in found if name in self._answered] != self._answered:
            return [f"the metadata holds {found}; {self._answered} were created"]
        if goes_on:
            await node.register()
            await self._create(node)
        return []
