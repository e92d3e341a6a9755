"""A topic that is made, written to, deleted and made again beside everything else, with readers and writers that do
not care: nobody is ever shown a record of a life of it that was over before.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any, Final

from riverlog import Admin, Consumer, Producer
from riverlog.client.errors import KafkaError
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from tests.simulation.machine import ADDRESS
from tests.simulation.plan import Churn
from tests.simulation.scene import Scene

FRONT: Final = "churned"
_GIVES_UP_SECONDS: Final = 20.0
_SETTINGS: Final = {"segment.bytes": "1024", "flush.ms": "1", "flush.messages": "2"}
_IN_THE_WAY: Final = (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class Churning:
    """Topics that come and go. Each record says in which life of its topic it was sent."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._lives = 0

    async def churn(self, action: Churn) -> None:
        """Make a topic of a new name, and let it come and go."""
        self._lives += 1
        name = f"{FRONT}-{self._lives}"
        beside = [
            self._scene.loop.create_task(self._read(name)),
            self._scene.loop.create_task(self._write(name)),
        ]
        try:
            for life in range(action.lives):
                await self._make(name, action.policy)
                await self._fill(name, life)
                await self._delete(name)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)

    async def _make(self, name: str, policy: str) -> None:
        async def make(admin: Admin) -> None:
            with _unless_in_the_way():
                await admin.create_topic(name, partitions=2, configs={**_SETTINGS, "cleanup.policy": policy})

        await self._scene.insist(make)

    async def _delete(self, name: str) -> None:
        async def delete(admin: Admin) -> None:
            with _unless_in_the_way():
                await admin.delete_topics(name)

        await self._scene.insist(delete)
        self._scene.say(f"{name} deleted")

    async def _fill(self, name: str, life: int) -> None:
        """Write until a few segments are there."""
        with contextlib.suppress(KafkaError, TimeoutError):
            async with asyncio.timeout(_GIVES_UP_SECONDS), self._producer() as producer:
                for number in range(20):
                    await producer.send(name, key=b"%d" % (number % 3), value=b"%d " % life + b"." * 150, partition=0)

    async def _write(self, name: str) -> None:
        """Write without regard to whether the topic is there."""
        while True:
            with contextlib.suppress(KafkaError):
                async with self._producer() as producer:
                    while True:
                        await producer.send(name, key=b"x", value=b"- " + b"." * 150, partition=1)
                        await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)

    def _producer(self) -> Producer:
        return Producer(ADDRESS, ports=self._scene.machine.ports, delivery_timeout_ms=2_000, request_timeout_ms=1_000)

    async def _read(self, name: str) -> None:
        """Wait for records all the time; those of a later life may come, those of an earlier one not again."""
        latest = -1
        while True:
            with contextlib.suppress(KafkaError):
                given: dict[str, Any] = {"ports": self._scene.machine.ports, "auto_offset_reset": "earliest"}
                async with Consumer(ADDRESS, request_timeout_ms=1_500, **given) as consumer:
                    consumer.assign([TopicPartition(name, 0), TopicPartition(name, 1)])
                    while True:
                        for record in await consumer.poll(timeout_ms=300):
                            if record.partition == 0:
                                life = int((record.value or b"").split()[0])
                                if life < latest:
                                    self._scene.ledger.blame(f"{name} shows its life {life} after its life {latest}")
                                latest = life
            await asyncio.sleep(0.05)


@contextlib.contextmanager
def _unless_in_the_way() -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        if error.code not in _IN_THE_WAY:
            raise
