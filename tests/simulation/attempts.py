"""Attempts of the tasks of a pipeline: members of a shared transaction, each a process of its own.

Some finish, some die on the way, and some hang: whoever waits for them gives up, and later they go on as if nothing had
been.
"""

import asyncio
from contextlib import suppress
from random import Random
from typing import Final

from riverlog.client.errors import KafkaError
from riverlog.client.producer.exactly_once import NewRecord
from riverlog.client.producer.shared_transactions import Member, Membership, SharedBatch
from riverlog.model.ids import ProducerId, TopicPartition
from riverlog.verify.history import History, Write
from riverlog.verify.labels import value_of
from tests.simulation.lifelines import Lifeline
from tests.simulation.machine import ADDRESS
from tests.simulation.scene import Scene
from tests.simulation.writers import TIMING

RESULTS: Final = tuple(TopicPartition("results", index) for index in range(3))
FATES: Final = ("finishes",) * 6 + ("dies", "dies", "hangs", "has a twin")
_DEATH_SECONDS: Final = (0.003, 0.02, 0.2)
_HANG_SECONDS: Final = (0.1, 1.0, 5.0)
_PAUSE_SECONDS: Final = (0.0, 0.0, 0.05, 0.5)


class Attempt:
    """One attempt, at work from the beginning."""

    def __init__(
        self, scene: Scene, history: History, batch: SharedBatch, *, task: int, number: int, fate: str
    ) -> None:
        self.name = f"{batch.transactional_id}.task{task}.{number}"
        self.writes: list[Write] = []
        self.membership: Membership | None = None
        """What it handed over when it had finished."""
        self.is_over = False
        """Whether the end of its batch was told."""
        self._scene = scene
        self._history = history
        self._hangs = fate == "hangs"
        self._random = Random(f"{scene.plan.seed} {self.name}")
        self._line = Lifeline(scene.machine)
        self._given_up = asyncio.Event()
        self._transaction = history.begin(self.name)  # which nobody commits; a commit takes its writes over
        loop = asyncio.get_running_loop()
        self._running = loop.create_task(self._run(batch, task, number))
        if fate == "dies":
            loop.call_later(self._random.random() * self._random.choice(_DEATH_SECONDS), self.die)

    async def outcome(self) -> Membership | None:
        """Wait until it has ended, or hangs."""
        await self._given_up.wait()
        return self.membership

    def die(self) -> None:
        """Be gone at once."""
        self._line.die()
        self._running.cancel()

    async def gone(self) -> None:
        """Wait until nothing of it runs any more."""
        await asyncio.wait([self._running])
        if not self._running.cancelled() and (error := self._running.exception()) is not None:
            raise error

    async def _run(self, batch: SharedBatch, task: int, number: int) -> None:
        member = Member(ADDRESS, batch, task=task, attempt=number, ports=self._line.ports, linger_ms=1, **TIMING)
        try:
            await member.start()
            if member.is_needed:
                for _ in range(self._random.randrange(1, 4)):
                    await self._write(member)
                    await self._pause()
            self.membership = await member.finish()
        except KafkaError as error:
            self._scene.say(f"{self.name}: {error.code.name}")
        finally:
            self._given_up.set()
            with suppress(KafkaError):
                await member.close()

    async def _write(self, member: Member) -> None:
        """Write a portion. When the batch has ended, nobody may be told that a record is kept, unless its partition has
        yet to hear of the end: what is written there until then is aborted when it does."""
        ended = set(RESULTS) - self._partitions_yet_to_hear(member) if self.is_over else set()
        portion = [self._next() for _ in range(self._random.randrange(1, 5))]
        await member.write(
            NewRecord(
                write.partition.topic, value_of(write.value, 40), write.value, partition=write.partition.partition
            )
            for write in portion
        )
        await member.flush()
        if not ended.isdisjoint(write.partition for write in portion):
            self._scene.ledger.blame(f"{self.name} could write {portion[0].value} when its batch had ended")
        for write in portion:
            self._history.acknowledged(write)

    def _partitions_yet_to_hear(self, member: Member) -> set[TopicPartition]:
        """Find the partitions in which the attempt's transaction is open, or may be: those that are not open here."""
        node, held = self._scene.machine.node, member.membership.producer
        if node is None or held is None:
            return set(RESULTS)
        opened = {partition.name: partition for partition in node.parts.registry.list_opened()}
        return {
            name
            for name in RESULTS
            if (partition := opened.get(name)) is None
            or ((known := partition.log.producers.get(ProducerId(held[0]))) and known.transaction_offset >= 0)
        }

    def _next(self) -> Write:
        partition = self._random.choice(RESULTS)
        write = self._history.write(
            self.name, partition, f"{self.name}-{len(self.writes)}", transaction=self._transaction
        )
        self.writes.append(write)
        return write

    async def _pause(self) -> None:
        if self._hangs:
            self._given_up.set()
        seconds = _HANG_SECONDS if self._hangs else _PAUSE_SECONDS
        await asyncio.sleep(self._random.random() * self._random.choice(seconds))
