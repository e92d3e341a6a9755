"""A whole world in one process: virtual time, a disk that forgets, a network in memory, seeded chance."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

from riverlog.broker.handlers import load_handler
from riverlog.client.network.security import Login, Security
from riverlog.client.ports import Ports
from riverlog.log.sync import SyncPlan
from riverlog.model.checkpoint_topic import CHECKPOINTS_PRINCIPAL, OWN_MECHANISM
from riverlog.model.limits import DESCRIPTORS_ASSUMED
from riverlog.model.ports import Workers
from riverlog.model.resolution import configure
from riverlog.node import Node
from riverlog.node_world import World
from tests.support.disk import MemoryDisk
from tests.support.network import MemoryNetwork
from tests.support.virtual_time import VirtualClock

T = TypeVar("T")
SECRET = "known to the node's own parts"


class PatientWorkers:
    """The Workers port on virtual time: work begins now, and its end is told a little later."""

    def __init__(self, random: Random, seconds_max: float = 0.005) -> None:
        self._random = random
        self._seconds_max = seconds_max

    def run(self, work: Callable[[], T]) -> Awaitable[T]:
        return self._later(work)

    def close(self) -> None:
        """Nothing runs beside the loop here."""

    async def _later(self, work: Callable[[], T]) -> T:
        result = work()
        await asyncio.sleep(self._random.random() * self._seconds_max)
        return result


class WorkersThatFlushSlowly(PatientWorkers):
    """Workers that take five seconds to flush the partitions of one topic."""

    def __init__(self, random: Random, folder: str) -> None:
        super().__init__(random)
        self._folder = folder

    async def _later(self, work: Callable[[], T]) -> T:
        plans = [each for each in getattr(work, "args", ()) if isinstance(each, SyncPlan)]
        if any(self._folder in file.path for plan in plans for file in plan.files):
            await asyncio.sleep(5)
        return await super()._later(work)


class Universe:
    """What outlives a node: its disk, the network and the clock."""

    def __init__(self, seed: int = 0) -> None:
        self.random = Random(seed)
        self.disk = MemoryDisk(seed)
        self.network = MemoryNetwork()
        self.clock = VirtualClock()
        self.workers: Workers = PatientWorkers(self.random)
        self.descriptors_max = DESCRIPTORS_ASSUMED

    def node(self, **settings: str) -> Node:
        """Build a node on this disk; settings are written with underscores: `log_segment_bytes="4096"`."""
        flags = {name.replace("_", "."): value for name, value in settings.items()}
        doors = {"listeners": "PLAINTEXT://node:9092", "metrics.port": "-1", "checkpoints.port": "-1"}
        given = {**doors, "log.dirs": "/data"} | flags
        world = World(
            clock=self.clock,
            disk=self.disk,
            network=self.network,
            workers=self.workers,
            random=self.random,
            secret=SECRET,
            descriptors_max=self.descriptors_max,
        )
        return Node(configure(profile="dev", flags=given).settings, world, handlers=load_handler)

    async def lose_power(self) -> None:
        """End everything that runs, without a word; the disk forgets what was not synced, and all streams are cut."""
        self.disk.crash()
        await self._end()

    async def kill(self) -> None:
        """End everything that runs, without a word; the disk keeps what was written."""
        self.disk.kill()
        await self._end()

    async def _end(self) -> None:
        self.network = MemoryNetwork()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    @property
    def security(self) -> Security:
        """What a part of a node shows it."""
        return Security(login=Login(OWN_MECHANISM, CHECKPOINTS_PRINCIPAL, SECRET))

    @property
    def ports(self) -> Ports:
        """What a client in this universe is given."""
        return Ports(self.network, self.clock, self.random)
