"""Copiers: members of one group that copy a topic to another, each portion with its offsets in one transaction."""

import asyncio
from collections.abc import Sequence
from itertools import count
from random import Random
from typing import Final

from riverlog import Consumer, process_exactly_once
from riverlog.client.consumer.fetched_records import ConsumerRecord
from riverlog.client.errors import KafkaError
from riverlog.client.producer.exactly_once import NewRecord
from riverlog.model.ids import TopicPartition
from riverlog.verify.history import History, Value
from riverlog.verify.labels import name_of, value_of
from tests.simulation.lifelines import Lifeline
from tests.simulation.machine import ADDRESS
from tests.simulation.noting import NotingProducer
from tests.simulation.scene import Scene
from tests.simulation.writers import SOURCE, TIMEOUT_MS, TIMING
from tests.support.members import cut

GROUP: Final = "copiers"
COPIES: Final = tuple(TopicPartition("copies", index) for index in range(len(SOURCE)))
_PORTIONS: Final = (1, 3, 20)
_THINK_SECONDS: Final = (0.0, 0.0, 0.02, 0.4)
_AGAIN_SECONDS: Final = 0.1
_ATTEMPT: Final = "~"


class Copiers:
    """All places in the group."""

    def __init__(self, scene: Scene, history: History) -> None:
        self._scene = scene
        self._history = history
        self.present = False
        """Whether there ever was one."""
        self._copiers: dict[int, _Copier] = {}
        self._lives = count(1)
        self._attempts = count(1)

    def start(self, number: int) -> None:
        """Start a copier."""
        self.present = True
        if number not in self._copiers:
            self._copiers[number] = _Copier(
                self._scene, self._history, self._attempts, number=number, life=next(self._lives)
            )

    def die(self, number: int, turns: int) -> None:
        """End a copier."""
        copier = self._copiers.pop(number, None)
        if copier is not None:
            self._scene.spawn(copier.die(turns))

    def freeze(self, number: int, seconds: float) -> None:
        """Hold back what a copier sends."""
        if number in self._copiers:
            self._copiers[number].line.freeze_for(seconds)

    def settle(self) -> None:
        """Continue all, and start one where none is there."""
        for copier in self._copiers.values():
            copier.line.thaw()
        self.start(0)

    async def stop(self) -> None:
        """End all."""
        for copier in self._copiers.values():
            await copier.die(0)
        self._copiers.clear()


class _Copier:
    """One process, from its start to its death; it begins again after what it cannot go on from."""

    def __init__(self, scene: Scene, history: History, attempts: "count[int]", *, number: int, life: int) -> None:
        self.line = Lifeline(scene.machine)
        self._scene = scene
        self._history = history
        self._attempts = attempts
        self._number = number
        self._name = f"copier{number}.{life}"
        self._random = Random(f"{scene.plan.seed} {self._name}")
        self._producer: NotingProducer
        self._task = asyncio.get_running_loop().create_task(self._live())

    async def die(self, turns: int) -> None:
        """Be gone after so many turns of the loop."""
        for _ in range(turns):
            await asyncio.sleep(0)
        self.line.die()
        self._task.cancel()
        await asyncio.wait([self._task])
        if not self._task.cancelled() and (error := self._task.exception()) is not None:
            raise error

    async def _live(self) -> None:
        for restart in count():
            await self._scene.machine.serving()
            consumer = self._new_consumer()
            self._producer = NotingProducer(
                self._history,
                f"{self._name}.{restart}",
                ports=self.line.ports,
                older=self._number % 2 == 1,
                transactional_id=f"copier{self._number}",
                transaction_timeout_ms=TIMEOUT_MS,
                **TIMING,
            )
            try:
                await consumer.start()
                consumer.subscribe([SOURCE[0].topic])
                await self._producer.start()
                await process_exactly_once(
                    consumer, self._producer, self._copy, records_max=self._random.choice(_PORTIONS)
                )
            except KafkaError as error:
                self._scene.say(f"{self._name}: {error.code.name}")
            finally:
                await self._producer.vanish()
                await cut(consumer)
            await asyncio.sleep(_AGAIN_SECONDS)

    def _new_consumer(self) -> Consumer:
        return Consumer(
            ADDRESS,
            group=GROUP,
            group_protocol="consumer" if self._scene.plan.seed % 2 else "classic",
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            auto_commit=False,
            heartbeat_interval_ms=300,
            session_timeout_ms=3_000,
            max_poll_interval_ms=5_000,
            request_timeout_ms=1_500,
            ports=self.line.ports,
        )

    async def _copy(self, record: ConsumerRecord) -> Sequence[NewRecord]:
        """Return the copy of a record under a name of its own, by which all copies of it are known."""
        original = name_of(record.key, record.value)
        transaction = self._producer.transaction_noted
        assert transaction is not None
        transaction.read.append((TopicPartition(record.topic, record.partition), original))
        copy = f"{original}{_ATTEMPT}{next(self._attempts)}"
        await asyncio.sleep(self._random.random() * self._random.choice(_THINK_SECONDS))
        to = COPIES[record.partition]
        return [NewRecord(to.topic, value_of(copy, 20), key=copy, partition=to.partition)]


def original_of(copy: Value) -> Value:
    """Return the name of the record that this is a copy of."""
    return copy.rpartition(_ATTEMPT)[0]
