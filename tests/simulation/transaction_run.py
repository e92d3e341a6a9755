"""Carries out a plan with transactions, and lets the judge of histories look at what clients did and saw.

Readers of all and of committed records read along, through every crash. In the end all trouble stops, whoever writes is
gone, and what was left open must end by itself: then the power is lost once more and everything is read from the
beginning, at both isolation levels.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from riverlog import Admin
from riverlog.client.errors import KafkaError
from riverlog.coordination.shard import Shard
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import Offset, TopicPartition
from riverlog.node import Node
from riverlog.verify.checker import judge
from riverlog.verify.history import History, Isolation, Reading, Value
from riverlog.verify.history import KnownOutcome as Known
from riverlog.verify.load.consumers import end_offsets, note, read_everything
from riverlog.verify.load.scene import Scene as ReadersScene
from tests.simulation import plan as plans
from tests.simulation import transaction_acts as acts
from tests.simulation.attempts import RESULTS
from tests.simulation.copiers import COPIES, Copiers, original_of
from tests.simulation.machine import ADDRESS
from tests.simulation.pipelines import PROGRESS, Pipelines
from tests.simulation.scene import Outcome, Scene
from tests.simulation.writers import DOOMED, ORDERS, SOURCE, Writers

READ: Final = (*SOURCE, *ORDERS, *COPIES, *RESULTS)
SETTLE_SECONDS_MAX: Final = 120.0
END_SECONDS_MAX: Final = 30.0
"""How long a transaction may be open when nobody writes any more: its time, and that of what held up its end."""
_POLL_MS: Final = 400
_AGAIN_SECONDS: Final = 0.05
REPLAY_EVERY: Final = 8


class TransactionalRun:
    """One run."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._history = History()
        self._writers = Writers(scene, self._history)
        self._copiers = Copiers(scene, self._history)
        self._pipelines = Pipelines(scene, self._history)
        self._reading = ReadersScene(
            ADDRESS,
            partitions=list(READ),
            group="readers",
            producer={},
            consumer={"request_timeout_ms": 1_500},
            ports=scene.machine.ports,
        )
        self._reading.history = self._history
        self._along: dict[Isolation, dict[TopicPartition, Reading]] = {isolation: {} for isolation in Isolation}
        self._dropping = asyncio.Lock()
        scene.machine.on_start = self._started
        scene.machine.on_power_lost = lambda: scene.say("power lost")

    async def all(self) -> Outcome:
        """Run the plan from the first start to the verdict."""
        scene = self._scene
        for partitions in (SOURCE, ORDERS, COPIES, RESULTS, (DOOMED,), (PROGRESS,)):
            await scene.insist(partial(_create, partitions=partitions))
        readers = [scene.loop.create_task(self._read_along(isolation)) for isolation in Isolation]
        for number, step in enumerate(scene.plan.steps):
            await asyncio.sleep(step.after_seconds)
            scene.say(str(step.action))
            self._act(step.action)
            if number % REPLAY_EVERY == 0:
                self._compare_with_replay()
        try:
            async with asyncio.timeout(SETTLE_SECONDS_MAX):
                await self._settle()
            for reader in readers:
                reader.cancel()
            await asyncio.wait(readers)
            async with asyncio.timeout(SETTLE_SECONDS_MAX):
                await self._judge()
        except KafkaError as error:
            scene.ledger.blame(f"the node does not come back: {error}")
        except TimeoutError:
            waiting = sorted(task.get_coro().__qualname__ for task in scene.tasks)
            scene.ledger.blame(f"it does not come to an end; still waiting: {waiting}")
        await scene.machine.shut_down()
        return self._closed()

    def _closed(self) -> Outcome:
        outcomes = [transaction.outcome for transaction in self._history.transactions if transaction.committing]
        self._scene.counts.update(
            acknowledged=sum(write.outcome is Known.DONE for write in self._history.writes),
            shown=sum(len(reading.sightings) for reading in self._history.readings),
            committed=outcomes.count(Known.DONE),
            unknown=outcomes.count(Known.UNKNOWN),
            aborted=sum(each.outcome is Known.REFUSED for each in self._history.transactions),
            shared=sum("/run" in each.name and each.outcome is Known.DONE for each in self._history.transactions),
        )
        return self._scene.outcome()

    def _started(self, node: Node) -> None:
        self._scene.look_at_start(node)

    # -- steps

    def _act(self, action: plans.Action) -> None:
        match action:
            case acts.Transact():
                self._writers.transact(action)
            case acts.WritePlainly():
                self._scene.spawn(self._writers.write_plainly(action))
            case acts.TakeOver():
                self._writers.take_over(action.writer)
            case acts.WriterDies():
                self._writers.die(action)
            case acts.WriterFreezes():
                self._writers.freeze(action)
            case acts.CopierStarts():
                self._copiers.start(action.copier)
            case acts.CopierDies():
                self._copiers.die(action.copier, action.turns)
            case acts.CopierFreezes():
                self._copiers.freeze(action.copier, action.seconds)
            case acts.DriverStarts():
                self._pipelines.start(action.pipeline, anew=action.anew)
            case acts.DriverDies():
                self._pipelines.die(action.pipeline, action.turns)
            case acts.DriverFreezes():
                self._pipelines.freeze(action.pipeline, action.seconds)
            case acts.DropTopic():
                self._scene.spawn(self._drop())
            case (
                plans.PowerLoss()
                | plans.Kill()
                | plans.Restart()
                | plans.FailDisk()
                | plans.Heal()
                | plans.SlowDisk()
                | plans.CutConnections()
                | plans.JumpClock()
            ):
                self._scene.trouble(action)
            case _:
                pass  # of plans without transactions

    async def _drop(self) -> None:
        async with self._dropping:
            await self._scene.insist(_delete)
            await self._scene.insist(partial(_create, partitions=(DOOMED,)))

    async def _read_along(self, isolation: Isolation) -> None:
        """Read everything as it comes, across all that happens to the node."""
        name = f"reader along at {isolation.value}"
        readings = self._along[isolation]
        for partition in READ:
            readings[partition] = self._history.read_from(name, partition, Offset(0), isolation=isolation)
        while True:
            await self._scene.machine.serving()
            try:
                async with self._reading.reader(isolation) as consumer:
                    consumer.assign(READ)
                    for partition, reading in readings.items():
                        await consumer.seek(partition, reading.position)
                    while True:
                        note(self._reading, readings, consumer, await consumer.poll(_POLL_MS))
            except KafkaError as error:
                self._scene.say(f"{name}: {error.code.name}")
                await asyncio.sleep(_AGAIN_SECONDS)

    # -- what coordinators remember

    def _compare_with_replay(self) -> None:
        """The state of every coordinator whose decisions are all committed is what its topic says."""
        node = self._scene.machine.node
        if node is None:
            return
        for groups in node.parts.groups:
            self._compare(groups, lambda machine: machine.state)
        for transactions in node.parts.transactions:
            self._compare(transactions, lambda machine: (machine.state, machine.pools))

    def _compare(self, shard: Shard[Any, Any], remembered: Callable[[Any], object]) -> None:
        if not shard.settled:
            return
        with self._scene.machine.looking():
            try:
                replayed = shard.replayed()
            except (OSError, Refusal):
                return  # the disk is gone, and will tell
        self._scene.counts["replays"] += 1
        if remembered(replayed) != remembered(shard.machine):
            self._scene.ledger.blame(
                f"{shard.name}: {remembered(shard.machine)} is not what the topic says: {remembered(replayed)}"
            )

    # -- the end

    async def _settle(self) -> None:
        """End all trouble, and wait until everybody has finished; see that nothing stays open."""
        scene, machine = self._scene, self._scene.machine
        machine.heal()
        if machine.node is not None and machine.node.not_ready():
            machine.lose_power()  # a directory that is offline comes back with a restart
        await self._writers.settle()
        while scene.tasks:
            await asyncio.wait(set(scene.tasks))
        await machine.serving()
        await self._pipelines.settle()
        async with Admin(ADDRESS, ports=machine.ports) as admin:
            await self._see_ends(admin, tuple(partition for partition in READ if partition not in COPIES))
            if self._copiers.present:
                self._copiers.settle()
                await self._see_copied(admin)
                await self._copiers.stop()
            await self._see_ends(admin, READ)
            await self._see_decided(admin)
        self._compare_with_replay()
        machine.kill() if not scene.durable else machine.lose_power()
        await asyncio.sleep(0.001)
        await machine.serving()

    async def _see_ends(self, admin: Admin, partitions: Iterable[TopicPartition]) -> None:
        """See that readers of committed records come to the end of all partitions."""
        async with self._reading.reader(Isolation.READ_COMMITTED) as consumer:

            async def held_up() -> object:
                ends = await end_offsets(self._reading, admin, seconds=END_SECONDS_MAX)
                stable = await consumer.end_offsets(partitions)
                return {each: (at, ends[each]) for each, at in stable.items() if at < ends[each]}

            await self._until_nothing(held_up, "transactions hang")

    async def _see_copied(self, admin: Admin) -> None:
        """See that there come to be as many copies as there are records to copy."""
        readings = self._along[Isolation.READ_COMMITTED]

        async def behind() -> object:
            ends = await end_offsets(self._reading, admin, seconds=END_SECONDS_MAX)
            return [
                source
                for source, copies in zip(SOURCE, COPIES, strict=True)
                if readings[source].position < ends[source]
                or len(readings[copies].sightings) < len(readings[source].sightings)
            ]

        await self._until_nothing(behind, "copiers do not come to an end")

    async def _see_decided(self, admin: Admin) -> None:
        async def undecided() -> object:
            return [
                each
                for each in await admin.list_transactions()
                if "Complete" not in each.state and each.state != "Empty"
            ]

        await self._until_nothing(undecided, "ids are not at rest")

    async def _until_nothing(self, ask: Callable[[], Any], complaint: str) -> None:
        deadline = self._scene.loop.time() + END_SECONDS_MAX
        while left := await ask():
            if self._scene.loop.time() > deadline:
                self._scene.ledger.blame(f"{complaint}: {left}")
                return
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _judge(self) -> None:
        async with Admin(ADDRESS, ports=self._scene.machine.ports) as admin:
            for isolation in Isolation:
                behind = await read_everything(self._reading, admin, isolation, seconds=END_SECONDS_MAX)
                for partition in behind:
                    self._scene.ledger.blame(f"{partition} could not be read to its end at {isolation.value}")
            await self._pipelines.judge(admin)
        if self._copiers.present:
            self._judge_copies()
        self._history.writes = [write for write in self._history.writes if write.partition != DOOMED]
        for anomaly in judge(self._history).anomalies:
            self._scene.ledger.blame(f"{anomaly.name()}: {anomaly.sentence}")

    def _judge_copies(self) -> None:
        """What was committed in the source stands in the copies once, and in its order."""
        for source, copies in zip(SOURCE, COPIES, strict=True):
            originals = self._in_the_end(source)
            copied = [original_of(copy) for copy in self._in_the_end(copies)]
            if originals != copied:
                self._scene.ledger.blame(
                    f"{copies} holds copies of {_difference(copied, originals)} that {source} does not have there, "
                    f"and lacks {_difference(originals, copied)}"
                )

    def _in_the_end(self, partition: TopicPartition) -> list[Value]:
        (reading,) = (
            each
            for each in self._history.readings
            if each.partition == partition and each.at_end and each.isolation is Isolation.READ_COMMITTED
        )
        return [sighting.value for sighting in reading.sightings]


def _difference(these: list[Value], others: list[Value]) -> list[Value]:
    """Return what is in these and not in others, or all from the first difference in order on."""
    more = list((Counter(these) - Counter(others)).elements())
    return more or [each for each, other in zip(these, others, strict=False) if each != other]


async def _create(admin: Admin, partitions: tuple[TopicPartition, ...]) -> None:
    try:
        await admin.create_topic(partitions[0].topic, partitions=len(partitions))
    except KafkaError as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise


async def _delete(admin: Admin) -> None:
    try:
        await admin.delete_topics(DOOMED.topic)
    except KafkaError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
