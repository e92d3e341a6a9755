"""Pipelines: a driver and the attempts of its tasks write batches together, by shared transactions.

Drivers die, freeze and are replaced, before and after a decision; attempts die, hang and come back when their batch has
long ended, or are there twice. Every commit leaves its own name as the marker, so that whoever asks later learns which
of them took effect.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Final, TypeVar

from riverlog import Admin
from riverlog.client.errors import KafkaError, ProducerFenced, TimedOut, TransactionAborted
from riverlog.client.producer.shared_transactions import CommittedBatch, SharedBatch, SharedTransactions
from riverlog.model.ids import TopicPartition
from riverlog.verify.history import History, KnownOutcome, Transaction
from tests.simulation.attempts import FATES, Attempt
from tests.simulation.holders import Holders
from tests.simulation.lifelines import Lifeline
from tests.simulation.machine import ADDRESS
from tests.simulation.scene import Scene
from tests.simulation.writers import TIMEOUT_MS, TIMING

T = TypeVar("T")

PROGRESS: Final = TopicPartition("progress", 0)
"""Nothing is written here: a group's offset in it is the number of the commit that brought it."""
_ATTEMPTS_MAX: Final = 5
_PAUSE_SECONDS: Final = 0.05


class Pipelines:
    """All pipelines."""

    def __init__(self, scene: Scene, history: History) -> None:
        self._scene = scene
        self._history = history
        self._pipelines: dict[int, Pipeline] = {}

    def start(self, number: int, *, anew: bool) -> None:
        """Make a driver take over, in a new run of the pipeline or in the one that there is."""
        self._pipeline(number).start(anew=anew)

    def die(self, number: int, turns: int) -> None:
        """End the driver that came last."""
        if number in self._pipelines:
            self._pipelines[number].die(turns)

    def freeze(self, number: int, seconds: float) -> None:
        """Hold back what the driver that came last sends."""
        if number in self._pipelines:
            self._pipelines[number].freeze(seconds)

    async def settle(self) -> None:
        """End all drivers, and ask once more how far each pipeline has come."""
        for pipeline in self._pipelines.values():
            await pipeline.settle()

    async def judge(self, admin: Admin) -> None:
        """Look at what is left of each pipeline, when everything was read."""
        for pipeline in self._pipelines.values():
            await pipeline.judge(admin)

    def _pipeline(self, number: int) -> "Pipeline":
        if number not in self._pipelines:
            self._pipelines[number] = Pipeline(self._scene, self._history, number)
        return self._pipelines[number]


@dataclass(slots=True, eq=False)
class _Commit:
    """One commit of a batch that a driver asked for."""

    number: int
    incarnation: str
    batch: int
    transaction: Transaction


class Pipeline:
    """One transactional id, its drivers one after another, and what they committed."""

    def __init__(self, scene: Scene, history: History, number: int) -> None:
        self.name = f"pipeline{number}"
        self.scene = scene
        self.history = history
        self.random = Random(f"{scene.plan.seed} {self.name}")
        self.holders = Holders(history, scene.ledger.blame)
        self._attempts: list[Attempt] = []
        self._commits: dict[str, _Commit] = {}
        self._runs = 0
        self._lives = count(1)
        self._drivers: list[_Driver] = []
        self._last: list[CommittedBatch] = []
        """The last batch of each incarnation that has committed one."""

    @property
    def incarnation(self) -> str:
        return f"run{self._runs}"

    def start(self, *, anew: bool) -> None:
        """Make a driver take over."""
        self._runs += anew
        self._drivers.append(_Driver(self, f"{self.name}.driver{next(self._lives)}", self.incarnation))

    def die(self, turns: int) -> None:
        """End the driver that came last."""
        if self._drivers:
            self.scene.spawn(self._drivers.pop().die(turns))

    def freeze(self, seconds: float) -> None:
        """Hold back what the driver that came last sends."""
        if self._drivers:
            self._drivers[-1].line.freeze_for(seconds)

    def attempt(self, batch: SharedBatch, task: int, fate: str) -> Attempt:
        """Make another attempt of a task begin."""
        number = len(self._attempts) + 1
        attempt = Attempt(self.scene, self.history, batch, task=task, number=number, fate=fate)
        self._attempts.append(attempt)
        return attempt

    def asks_to_commit(self, driver: str, incarnation: str, batch: int, parts: list[Attempt]) -> _Commit:
        """Note a commit that is about to be asked for: from here on what its members wrote belongs to it."""
        number = len(self._commits) + 1
        transaction = self.history.begin(driver, f"{self.name}/{incarnation}/{batch}/{number}")
        for part in parts:
            for write in part.writes:
                write.transaction = transaction
        commit = self._commits[transaction.name] = _Commit(number, incarnation, batch, transaction)
        self.history.committing(transaction)
        return commit

    def learn(self, incarnation: str, found: CommittedBatch | None) -> None:
        """Take note of the last commit that took effect: others of its batch did not."""
        if found is None:
            return
        decided = self._commits.get(found.marker.decode())
        if decided is None or (decided.incarnation, decided.batch) != (incarnation, found.number):
            self.scene.ledger.blame(
                f"{self.name}: batch {found.number} of {incarnation} has the marker {found.marker!r}"
            )
            return
        if decided.transaction.outcome is KnownOutcome.REFUSED:
            self.scene.ledger.blame(f"{decided.transaction.name} took effect, though it was said not to")
        self.history.committed(decided.transaction)
        for other in self._of_batch(incarnation, found.number):
            if other is not decided and other.transaction.outcome is KnownOutcome.UNKNOWN:
                self.history.aborted(other.transaction)

    async def settle(self) -> None:
        """End all, and make a last driver of each incarnation ask how far it has come."""
        for driver in self._drivers:
            await driver.die(0)
        for attempt in self._attempts:
            attempt.die()
            await attempt.gone()
        line = Lifeline(self.scene.machine)
        for run in range(self._runs + 1):
            async with self.owner(f"run{run}", line) as owner:
                found = await owner.committed()
            self.learn(f"run{run}", found)
            if found is not None:
                self._last.append(found)

    async def judge(self, admin: Admin) -> None:
        """Look whether each batch was committed once, and the group's offset with the last of them."""
        batches = {(commit.incarnation, commit.batch) for commit in self._commits.values()}
        for incarnation, batch in sorted(batches):
            done = [
                commit.transaction.name
                for commit in self._of_batch(incarnation, batch)
                if commit.transaction.outcome is KnownOutcome.DONE
            ]
            if len(done) > 1:
                self.scene.ledger.blame(f"{self.name}: batch {batch} of {incarnation} was committed as {done}")
        at = (await admin.group_offsets(self.name)).get(PROGRESS)
        told = 0 if at is None else at.offset
        commit = next((each for each in self._commits.values() if each.number == told), None)
        if told and (commit is None or commit.transaction.outcome is KnownOutcome.REFUSED):
            self.scene.ledger.blame(f"{self.name}: the group stands at {told}, which was not committed")
        last = max((int(each.marker.decode().rpartition("/")[2]) for each in self._last), default=told)
        if last != told:  # a driver of an earlier incarnation may have been the last to take over
            self.scene.ledger.blame(f"{self.name}: the group stands at {told}, but the last batches are {self._last}")

    def owner(self, incarnation: str, line: Lifeline) -> SharedTransactions:
        """Describe a driver's side of the pipeline."""
        return SharedTransactions(
            ADDRESS,
            self.name,
            incarnation=incarnation,
            transaction_timeout_ms=TIMEOUT_MS,
            request_timeout_ms=TIMING["request_timeout_ms"],
            block_ms_max=TIMING["block_ms_max"],
            ports=line.ports,
        )

    def _of_batch(self, incarnation: str, batch: int) -> list[_Commit]:
        return [each for each in self._commits.values() if (each.incarnation, each.batch) == (incarnation, batch)]


class _Driver:
    """One process that drives a pipeline, or believes so."""

    def __init__(self, pipeline: Pipeline, name: str, incarnation: str) -> None:
        self.line = Lifeline(pipeline.scene.machine)
        self._pipeline = pipeline
        self._scene = pipeline.scene
        self._history = pipeline.history
        self._name = name
        self._incarnation = incarnation
        self._random = Random(f"{pipeline.scene.plan.seed} {name}")
        self._owner = pipeline.owner(incarnation, self.line)
        self._task = asyncio.get_running_loop().create_task(self._live())

    async def die(self, turns: int) -> None:
        """Be gone after so many turns of the loop; the tasks may not have heard of it."""
        for _ in range(turns):
            await asyncio.sleep(0)
        self.line.die()
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._owner.close()
        if not self._task.cancelled() and (error := self._task.exception()) is not None:
            raise error

    async def _live(self) -> None:
        try:
            self._pipeline.holders.starts(self._name)
            await self._insist(self._owner.start)
            self._pipeline.holders.started(self._name)
            while True:
                found = await self._insist(self._owner.committed)
                self._pipeline.learn(self._incarnation, found)
                for number in count(0 if found is None else found.number + 1):
                    if not await self._write_batch(number):
                        break
                    await asyncio.sleep(self._random.random() * self._random.choice((0.0, 0.3)))
        except ProducerFenced:
            self._scene.say(f"{self._name} is fenced")
            self._scene.counts["fenced"] += 1

    async def _insist(self, ask: Callable[[], Awaitable[T]]) -> T:
        while True:
            await self._scene.machine.serving()
            try:
                return await ask()
            except ProducerFenced:
                raise
            except KafkaError as error:
                self._scene.say(f"{self._name}: {error.code.name}")
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _write_batch(self, number: int) -> bool:
        """Write a batch and commit it; False where it is not known, or known not to be committed."""
        batch = self._owner.batch(number)
        tasks = self._random.randrange(1, 4)
        begun: list[Attempt] = []
        found = await asyncio.gather(*(self._run_task(batch, task, begun) for task in range(tasks)))
        listed = [attempt for attempt in found if attempt is not None]
        try:
            if len(listed) < tasks or self._random.random() < 0.1:
                await self._owner.abort(batch)
                _end(begun)
                return False
            return await self._commit(batch, listed, begun)
        except ProducerFenced:
            raise
        except KafkaError as error:
            self._scene.say(f"{self._name}, batch {number}: {error.code.name}")
            await asyncio.sleep(_PAUSE_SECONDS)
            return False

    async def _commit(self, batch: SharedBatch, listed: list[Attempt], begun: list[Attempt]) -> bool:
        commit = self._pipeline.asks_to_commit(self._name, self._incarnation, batch.number, listed)
        transaction = commit.transaction
        while True:
            try:
                await self._owner.commit(
                    batch,
                    [each.membership for each in listed if each.membership is not None],
                    group=self._pipeline.name,
                    offsets={PROGRESS: commit.number},
                    marker=transaction.name.encode(),
                )
            except TransactionAborted:
                # What was listed has ended before; the batch may be open again, for attempts that joined since.
                self._scene.say(f"{transaction.name} is aborted")
                self._history.aborted(transaction)
                return False
            except TimedOut as error:
                self._scene.say(f"{self._name}: {error.code.name}")
                if self._random.random() < 0.4:
                    return await self._abort_in_doubt(batch, transaction)
                continue
            self._scene.say(f"{transaction.name} is committed")
            self._history.committed(transaction)
            self._pipeline.holders.committed(self._name, transaction)
            _end(begun)
            return True

    async def _abort_in_doubt(self, batch: SharedBatch, transaction: Transaction) -> bool:
        """Abandon a batch of which nobody knows whether it is committed; whoever says that it is, knows it."""
        await self._owner.abort(batch)
        self._scene.say(f"{transaction.name} is aborted after all")
        self._history.aborted(transaction)
        return False

    async def _run_task(self, batch: SharedBatch, task: int, begun: list[Attempt]) -> Attempt | None:
        """Make attempts of a task write until one has finished, and return it; all are among those `begun`."""
        for _ in range(_ATTEMPTS_MAX):
            fate = self._random.choice(FATES)
            attempts = [self._pipeline.attempt(batch, task, fate)]
            if fate == "has a twin":
                attempts.append(self._pipeline.attempt(batch, task, fate))
            begun += attempts
            for attempt in attempts:
                await attempt.outcome()
            finished = [attempt for attempt in attempts if attempt.membership is not None]
            if finished:
                return self._random.choice(finished)
            await asyncio.sleep(_PAUSE_SECONDS)
        return None


def _end(begun: list[Attempt]) -> None:
    for attempt in begun:
        attempt.is_over = True
