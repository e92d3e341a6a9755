"""Writers with transactional ids: they commit, abort, leave open, die, freeze, and come back when replaced."""

import asyncio
from random import Random
from typing import Any, Final

from riverlog.client.errors import KafkaError, ProducerFenced, TimedOut
from riverlog.model.ids import TopicPartition
from riverlog.verify.history import History
from riverlog.verify.labels import value_of
from tests.simulation import transaction_acts as acts
from tests.simulation.holders import Holders
from tests.simulation.lifelines import Lifeline
from tests.simulation.noting import NotingProducer
from tests.simulation.scene import Scene

SOURCE: Final = tuple(TopicPartition("source", index) for index in range(2))
ORDERS: Final = tuple(TopicPartition("orders", index) for index in range(3))
DOOMED: Final = TopicPartition("doomed", 0)
"""What is written here may be deleted at any time, and is not looked at."""
WRITTEN: Final = (*SOURCE, *ORDERS, DOOMED)
TIMEOUT_MS: Final = 3_000
TIMING: Final[dict[str, Any]] = {"request_timeout_ms": 1_500, "delivery_timeout_ms": 6_000, "block_ms_max": 4_000}
_COMMITS_MAX: Final = 4
_PAUSE_SECONDS: Final = 0.05
_VALUE_BYTES: Final = (20, 60, 300)


class Writers:
    """All writers; each id has the one that took it last, and those before who may not know."""

    def __init__(self, scene: Scene, history: History) -> None:
        self._scene = scene
        self._history = history
        self._lives: dict[int, list[_Writer]] = {}
        self._holders: dict[int, Holders] = {}
        self._plain: NotingProducer | None = None
        self._plain_started = asyncio.Event()
        self._numbers = 0

    def transact(self, act: acts.Transact) -> None:
        """Write a transaction, by one writer, unless it is in the middle of one."""
        lives = self._lives.get(act.writer, [])
        writer = lives[-2] if act.late and len(lives) > 1 else self._holder(act.writer)
        writer.begin(act)

    def take_over(self, number: int) -> None:
        """Make another writer take over an id."""
        self._holder(number)
        self._new(number).begin(None)

    def die(self, act: acts.WriterDies) -> None:
        """End the holder of an id."""
        lives = self._lives.get(act.writer)
        if lives:
            self._scene.spawn(lives.pop().die(act.turns))

    def freeze(self, act: acts.WriterFreezes) -> None:
        """Hold back what the holder of an id sends."""
        self._holder(act.writer).line.freeze_for(act.seconds)

    async def write_plainly(self, act: acts.WritePlainly) -> None:
        """Write beside all transactions."""
        if self._plain is None:
            line = Lifeline(self._scene.machine)
            self._plain = NotingProducer(self._history, "plain", ports=line.ports, **TIMING)
            await insist(self._scene, self._plain)
            self._plain_started.set()
        await self._plain_started.wait()
        partition = WRITTEN[act.partition]
        for _ in range(act.records):
            self._numbers += 1
            try:
                send(self._plain, partition, f"plain-{self._numbers}", 30)
            except KafkaError as error:
                self._scene.say(f"plain: {error.code.name}")

    async def settle(self) -> None:
        """Wait until all have come to an end of what they do, and end them; what they leave open ends with its time."""
        writers = [writer for lives in self._lives.values() for writer in lives]
        for writer in writers:
            writer.line.thaw()
        for writer in writers:
            await writer.idle()
        for writer in writers:
            await writer.die(0)
        if self._plain is not None:
            await self._plain_started.wait()
            try:
                await self._plain.flush()
            except KafkaError:
                pass  # what was not acknowledged is unknown
            await self._plain.vanish()

    def _holder(self, number: int) -> "_Writer":
        lives = self._lives.get(number)
        return lives[-1] if lives and not lives[-1].is_fenced else self._new(number)

    def _new(self, number: int) -> "_Writer":
        scene, history = self._scene, self._history
        holders = self._holders.setdefault(number, Holders(history, scene.ledger.blame))
        self._numbers += 1
        writer = _Writer(scene, history, holders, number=number, life=self._numbers)
        self._lives.setdefault(number, []).append(writer)
        return writer


class _Writer:
    """One process that holds a transactional id, or believes so."""

    def __init__(self, scene: Scene, history: History, holders: Holders, *, number: int, life: int) -> None:
        self.name = f"writer{number}.{life}"
        self.is_fenced = False
        self.line = Lifeline(scene.machine)
        self._scene = scene
        self._holders = holders
        self._random = Random(f"{scene.plan.seed} {self.name}")
        self._numbers = 0
        self._task: asyncio.Task[None] | None = None
        self._is_started = False
        self._producer = NotingProducer(
            history,
            self.name,
            ports=self.line.ports,
            older=number % 3 == 2,
            transactional_id=f"writer{number}",
            transaction_timeout_ms=TIMEOUT_MS,
            **TIMING,
        )

    def begin(self, act: acts.Transact | None) -> None:
        """Begin with what there is to do: a transaction, or just to take over."""
        if self._task is None or self._task.done():
            self._task = self._scene.spawn(self._work(act))

    async def idle(self) -> None:
        """Wait until nothing is being done."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def die(self, turns: int) -> None:
        """Be gone after so many turns of the loop."""
        for _ in range(turns):
            await asyncio.sleep(0)
        self.line.die()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._producer.vanish()

    async def _work(self, act: acts.Transact | None) -> None:
        try:
            if not self._is_started:
                self._holders.starts(self.name)
                await insist(self._scene, self._producer)
                self._holders.started(self.name)
                self._is_started = True
            if act is not None:
                await self._finish()
                await self._transact(act)
        except ProducerFenced:
            self._scene.say(f"{self.name} is fenced")
            self._scene.counts["fenced"] += 1
            self.is_fenced = True
        except KafkaError as error:
            self._scene.say(f"{self.name}: {error.code.name}")

    async def _finish(self) -> None:
        """End what was left open."""
        if self._producer.in_doubt:
            await self._commit()
        elif self._producer.is_open:
            await self._producer.abort()

    async def _transact(self, act: acts.Transact) -> None:
        await self._producer.begin()
        for number in range(act.records):
            partition = WRITTEN[act.partitions[number % len(act.partitions)]]
            self._numbers += 1
            send(self._producer, partition, f"{self.name}-{self._numbers}", self._random.choice(_VALUE_BYTES))
            if number % 3 == 2:
                await asyncio.sleep(self._random.random() * act.pause_seconds)
        match act.end:
            case "commit":
                await self._commit()
            case "abort":
                await self._producer.abort()
                self._scene.say(f"{self.name} aborted")
            case "leave open":
                pass

    async def _commit(self) -> None:
        transaction = self._producer.transaction_noted
        assert transaction is not None
        for _ in range(_COMMITS_MAX):
            try:
                await self._producer.commit()
            except TimedOut as error:
                self._scene.say(f"{self.name}: {error.code.name}")
                continue
            self._scene.say(f"{transaction.name} is committed")
            self._holders.committed(self.name, transaction)
            return


async def insist(scene: Scene, producer: NotingProducer) -> None:
    """Start a producer, however long that takes."""
    while True:
        await scene.machine.serving()
        try:
            await producer.start()
            return
        except KafkaError as error:
            scene.say(f"{producer.name} cannot start: {error.code.name}")
            if isinstance(error, ProducerFenced):
                raise
            await asyncio.sleep(_PAUSE_SECONDS)


def send(producer: NotingProducer, partition: TopicPartition, label: str, size: int) -> None:
    """Send one record that says its name."""
    producer.send_soon(partition.topic, value_of(label, size), key=label, partition=partition.partition)
