"""A producer at work: sends named records at a steady rate to chosen partitions, and notes each outcome.

What is not acknowledged is unknown, unless the cluster refused the very content: an answer that was lost may have said
yes. A producer that cannot go on is followed by another, whose records are in an order of their own.
"""

import asyncio
from itertools import count
from random import Random
from typing import Final

from riverlog.client.errors import BufferFull, KafkaError
from riverlog.client.producer.deliveries import Delivery
from riverlog.client.producer.producer import Producer
from riverlog.model.errors import ErrorCode
from riverlog.verify.history import Write
from riverlog.verify.labels import value_of
from riverlog.verify.limits import VERIFIED_RECORDS_MAX, VERIFIED_RECORDS_UNDER_WAY_MAX
from riverlog.verify.load.scene import PAUSE_SECONDS, Scene

COMPRESSIONS: Final = ("none", "lz4", "zstd", "snappy", "gzip")
_TURN_SECONDS: Final = 0.02
_VALUE_BYTES: Final = (20, 100, 100, 400, 2_000)
_REFUSALS: Final = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    }
)


class Writer:
    """One producer after another, as long as the scene has it."""

    def __init__(self, scene: Scene, number: int, *, rate: float, random: Random) -> None:
        self._scene = scene
        self._number = number
        self._rate = rate
        self._random = random
        self._under_way: asyncio.Queue[tuple[Write, Delivery]] = asyncio.Queue()

    async def run(self) -> None:
        """Send until told to stop; return once every outcome is noted."""
        for life in count():
            if not self._scene.writing:
                return
            producer = self._scene.producer(COMPRESSIONS[self._number % len(COMPRESSIONS)])
            try:
                async with producer:
                    await self._live(producer, f"p{self._number}.{life}")
            except KafkaError as error:
                self._scene.trouble(error)
                await asyncio.sleep(PAUSE_SECONDS)

    async def _live(self, producer: Producer, name: str) -> None:
        self._under_way = asyncio.Queue()  # what a producer before this one left open stays unknown
        noting = asyncio.create_task(self._note())
        try:
            await self._send(producer, name)
            await self._under_way.join()
        finally:
            noting.cancel()
            await asyncio.wait([noting])

    async def _send(self, producer: Producer, name: str) -> None:
        scene, history, loop = self._scene, self._scene.history, asyncio.get_running_loop()
        numbers = count()
        now, allowed = loop.time(), 1.0
        while scene.writing and len(history.writes) < VERIFIED_RECORDS_MAX:
            while allowed >= 1 and self._under_way.qsize() < VERIFIED_RECORDS_UNDER_WAY_MAX:
                allowed -= 1
                self._send_one(producer, name, next(numbers))
            await asyncio.sleep(_TURN_SECONDS)
            before, now = now, loop.time()
            allowed = min(allowed + (now - before) * self._rate, self._rate + 1)  # a pause is not made up for

    def _send_one(self, producer: Producer, name: str, number: int) -> None:
        partition = self._random.choice(self._scene.partitions)
        label = f"{name}-{number}"
        value = value_of(label, self._random.choice(_VALUE_BYTES))
        write = self._scene.history.write(name, partition, label)
        try:
            delivery = producer.send_soon(partition.topic, value, key=label, partition=partition.partition)
        except BufferFull:
            self._scene.history.refused(write)
        else:
            self._under_way.put_nowait((write, delivery))

    async def _note(self) -> None:
        """Note the outcomes in the order of sending; one that is noted late accuses less, never more."""
        history = self._scene.history
        while True:
            write, delivery = await self._under_way.get()
            try:
                where = await delivery
            except KafkaError as error:
                self._scene.trouble(error)
                if error.code in _REFUSALS:
                    history.refused(write)
            else:
                history.acknowledged(write, where.offset)
            self._under_way.task_done()
