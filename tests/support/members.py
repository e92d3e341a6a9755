"""Members of a group on a whole node in virtual time: what each has, what each read, and when."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from riverlog import Admin, Consumer, Producer
from riverlog.model.ids import TopicPartition
from tests.support.world import Universe

ADDRESS = "node:9092"
TOPIC = "orders"


class Member:
    """A consumer that polls until it is told to stop or is killed."""

    def __init__(self, universe: Universe, name: str, **settings: Any) -> None:
        self.name = name
        self.events: list[tuple[str, list[int]]] = []
        self.read: list[tuple[int, int]] = []
        self.problems: list[Exception] = []
        self._settings = {
            "group": "billing",
            "auto_offset_reset": "earliest",
            "heartbeat_interval_ms": 500,
            "session_timeout_ms": 6_000,
            "ports": universe.ports,
            **settings,
        }
        self._topics = self._settings.pop("topics", (TOPIC,))
        self._pattern = self._settings.pop("pattern", None)
        self._think_seconds = self._settings.pop("think_seconds", 0.0)
        self._stopping = False
        self.consumer: Consumer | None = None
        self._task = asyncio.create_task(self._poll())

    @property
    def partitions(self) -> list[int]:
        """Return what the member has."""
        return [] if self.consumer is None else sorted(index for _, index in self.consumer.assignment())

    async def stop(self) -> None:
        """Leave in good order."""
        self._stopping = True
        await self._task

    async def die(self) -> None:
        """End without a word to the group."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _poll(self) -> None:
        consumer = self.consumer = Consumer(ADDRESS, **self._settings)
        await consumer.start()
        try:
            consumer.subscribe(
                self._topics,
                pattern=self._pattern,
                on_assigned=self._note("+"),
                on_revoked=self._note("-"),
                on_lost=self._note("lost"),
            )
            while not self._stopping:
                try:
                    records = await consumer.poll(200, max_records=10)
                except Exception as problem:
                    self.problems.append(problem)
                    await asyncio.sleep(1)
                    continue
                await asyncio.sleep(self._think_seconds)
                self.read += [(record.partition, record.offset) for record in records]
        except asyncio.CancelledError:
            await cut(consumer)
            raise
        await consumer.close()

    def _note(self, sign: str) -> Callable[[list[TopicPartition]], None]:
        return lambda partitions: self.events.append((sign, [partition.partition for partition in partitions]))


async def cut(consumer: Consumer) -> None:
    """End a consumer without commit or leave."""
    group = consumer._group
    if group is not None:
        for task in (group._running, group._attending, group._committing):
            if task is not None:
                task.cancel()
        group._member = None
    await consumer.close()


@asynccontextmanager
async def a_node(*, partitions: int = 4, **settings: str) -> AsyncIterator[Universe]:
    """Run a node that has a topic."""
    universe = Universe()
    node = universe.node(**settings)
    await node.start()
    async with Admin(ADDRESS, ports=universe.ports) as admin:
        await admin.create_topic(TOPIC, partitions=partitions)
    yield universe
    await node.stop()


async def write(universe: Universe, count: int, *, topic: str = TOPIC, partitions: int = 4) -> None:
    """Write records to the partitions in turn."""
    async with Producer(ADDRESS, ports=universe.ports) as producer:
        await asyncio.gather(
            *(producer.send(topic, b"%d" % number, partition=number % partitions) for number in range(count))
        )
