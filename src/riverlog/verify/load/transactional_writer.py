"""A transactional producer at work: some of its transactions commit, others abort, and some take offsets along.

A commit that is acknowledged promises all that is in it, and an abort that readers of committed records are shown
nothing of it. Where no answer comes, both may be; the next producer with the same id settles it before it writes.
"""

import asyncio
from itertools import count
from random import Random
from typing import Final

from riverlog.client.consumer.commits import GroupMetadata
from riverlog.client.consumer.consumer import Consumer
from riverlog.client.errors import BufferFull, KafkaError, TimedOut, TransactionAborted
from riverlog.client.producer.deliveries import Delivery
from riverlog.client.producer.producer import Producer
from riverlog.model.ids import NO_OFFSET, Offset
from riverlog.verify.history import Transaction, Write
from riverlog.verify.labels import value_of
from riverlog.verify.limits import VERIFIED_RECORDS_MAX
from riverlog.verify.load.scene import PAUSE_SECONDS, Scene

_RECORDS_MAX: Final = 20
_ABORTED: Final = 0.25
_WITH_OFFSETS: Final = 0.5
_COMMIT_ATTEMPTS_MAX: Final = 5
_VALUE_BYTES: Final = (20, 100, 400)

_Sent = list[tuple[Write, Delivery]]


class TransactionalWriter:
    """One producer after another with the same transactional id, as long as the scene has it."""

    def __init__(self, scene: Scene, number: int, *, rate: float, random: Random) -> None:
        self.group = self.group_of(scene, number)
        """The group whose offsets its transactions take along; it has no members."""
        self._scene = scene
        self._number = number
        self._rate = rate
        self._random = random
        self._partition = scene.partitions[number % len(scene.partitions)]
        self._reached = Offset(NO_OFFSET)
        """Behind the last record in that partition that is known to be there."""

    @staticmethod
    def group_of(scene: Scene, number: int) -> str:
        """Name the group of a writer, which is also its transactional id."""
        return f"{scene.group}-t{number}"

    async def run(self) -> None:
        """Write until told to stop."""
        for life in count():
            if not self._scene.writing:
                return
            try:
                async with self._scene.transactional_producer(self.group) as producer:
                    await self._live(producer, f"t{self._number}.{life}")
            except KafkaError as error:
                self._scene.trouble(error)
                await asyncio.sleep(PAUSE_SECONDS)

    async def look_up(self, *, seconds: float) -> None:
        """Ask how far the group is, once nothing is undecided any more."""
        scene = self._scene
        began = scene.history.moment()

        async def ask() -> Offset:
            async with scene.bystander(self.group) as consumer:
                return await self._committed(consumer)

        scene.history.looked_up(self.group, self._partition, await scene.insist(ask, seconds=seconds), began=began)

    async def _committed(self, consumer: Consumer) -> Offset:
        found = (await consumer.committed(self._partition)).get(self._partition)
        return Offset(NO_OFFSET if found is None else found.offset)

    async def _live(self, producer: Producer, name: str) -> None:
        scene, numbers = self._scene, count()
        while scene.writing and len(scene.history.writes) < VERIFIED_RECORDS_MAX:
            size = self._random.randint(1, _RECORDS_MAX)
            transaction = scene.history.begin(name)
            try:
                await self._transact(producer, transaction, [f"{name}-{next(numbers)}" for _ in range(size)])
            except TransactionAborted as error:
                scene.trouble(error)
                scene.history.aborted(transaction)
            await asyncio.sleep(size / self._rate)

    async def _transact(self, producer: Producer, transaction: Transaction, labels: list[str]) -> None:
        history = self._scene.history
        await producer.begin()
        sent = [each for label in labels if (each := self._send(producer, transaction, label)) is not None]
        if self._reached != NO_OFFSET and self._random.random() < _WITH_OFFSETS:
            history.commit(self.group, self._partition, self._reached, transaction=transaction)
            await producer.send_offsets(GroupMetadata(self.group), {self._partition: self._reached})
        if self._random.random() < _ABORTED:
            await producer.abort()
            history.aborted(transaction)
            return
        history.committing(transaction)
        await self._commit(producer)
        history.committed(transaction)
        self._note(sent)

    def _send(self, producer: Producer, transaction: Transaction, label: str) -> tuple[Write, Delivery] | None:
        partition = self._random.choice(self._scene.partitions)
        value = value_of(label, self._random.choice(_VALUE_BYTES))
        write = self._scene.history.write(transaction.client, partition, label, transaction=transaction)
        try:
            return write, producer.send_soon(partition.topic, value, key=label, partition=partition.partition)
        except BufferFull:
            self._scene.history.refused(write)
            return None

    async def _commit(self, producer: Producer) -> None:
        """Commit; after a time-out the same call asks again, and is told what became of it."""
        for _ in range(_COMMIT_ATTEMPTS_MAX - 1):
            try:
                await producer.commit()
            except TimedOut as error:
                self._scene.trouble(error)
            else:
                return
        await producer.commit()

    def _note(self, sent: _Sent) -> None:
        """Note where the records of a committed transaction lie."""
        for write, delivery in sent:
            if delivery.error is None:
                offset = delivery.result().offset
                self._scene.history.acknowledged(write, offset)
                if write.partition == self._partition and offset != NO_OFFSET:
                    self._reached = max(self._reached, Offset(offset + 1))
