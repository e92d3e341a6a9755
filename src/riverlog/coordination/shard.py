"""A shard: the coordinator of what belongs to one partition of an internal topic.

It is a machine that runs on that partition, and the timer that wakes it. It answers once it has read what was written
there, and it is another one to those who check in each epoch in which this node leads the partition. Once it has
resigned it writes nothing more.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from riverlog.coordination.futures import refused
from riverlog.coordination.shard_log import Batches, Damaged, ShardLog
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import LeaderEpoch, TopicPartition
from riverlog.model.machine import Command, ReplicatedMachine
from riverlog.model.ports import Clock
from riverlog.observe.containment import contained
from riverlog.partitions.replicas import Replicas
from riverlog.runner import Runner

Machine = TypeVar("Machine", bound=ReplicatedMachine[Any, Any])
Fact = TypeVar("Fact")
Reply = TypeVar("Reply")


class Shard(Generic[Machine, Fact]):
    """Runs a machine on a partition; `failed` is called when its log fails, and it is to be loaded again."""

    def __init__(
        self,
        name: TopicPartition,
        epoch: LeaderEpoch,
        replicas: Replicas,
        clock: Clock,
        *,
        new_machine: Callable[[], Machine],
        batches: Batches[Fact],
        woken: Command[Fact, None],
        failed: "Callable[[Shard[Machine, Fact], Exception], None]",
        carry_out: "Callable[[Shard[Machine, Fact], tuple[Any, ...]], None]" = lambda shard, effects: None,
        price: str | None = None,
        asked_again: Callable[[Sequence[Fact]], bool] = lambda facts: False,
    ) -> None:
        self.name = name
        self.epoch = epoch
        self.loaded = False
        self.damage: Damaged | None = None
        """Why it will not be there before somebody restores its log."""
        self._clock = clock
        self._woken = woken
        self._failed = failed
        self._timer: asyncio.Handle | None = None
        self._timer_deadline = 0.0  # on our clock: asking the loop for its own costs more than most commands
        self._log = ShardLog(name, replicas, clock, batches, price=price, asked_again=asked_again)
        self._runner: Runner[Machine, Fact, Any] = Runner(
            new_machine=new_machine,
            log=self._log,
            clock=clock,
            view=lambda machine: None,
            committed=lambda view, facts, effects: carry_out(self, effects),
            failed=self._log_failed,
        )

    @property
    def machine(self) -> Machine:
        """Return the machine, for those who look and change nothing."""
        return self._runner.machine

    @property
    def settled(self) -> bool:
        """Return whether the machine is what its log says, and no more."""
        return self.loaded and self._runner.settled

    def replayed(self) -> Machine:
        """Build a machine that is what the log says."""
        return self._runner.replayed()

    def begin(self) -> bool:
        """Begin at once if nothing was ever written; else it has to be loaded."""
        if not self._log.begun:
            self._runner.start()
            self.loaded = True
        return self.loaded

    async def load(self) -> None:
        """Read the log, and let the machine go on from there, before it is asked anything."""
        try:
            await self._runner.load()
        except Damaged as damage:
            self.damage = damage
            raise
        if not self._log.closed:  # another broker may have become the coordinator meanwhile
            self.loaded = True
            self._wake()

    def is_committed(self, then: Callable[[], None]) -> bool:
        """Return whether all of the log is committed, so that it can be read; else call `then` once that may be so.

        Who has just become leader waits here: what the one before wrote may not be known to be committed yet.
        """
        return self._log.is_committed(then)

    def lead(self, epoch: LeaderEpoch) -> None:
        """Take note of the epoch in which this node leads the partition."""
        assert epoch >= self.epoch, f"{self.name} was led in epoch {self.epoch} and now is in {epoch}"
        self.epoch = epoch

    def resign(self, error: Refusal) -> None:
        """Refuse all who wait, also for what was decided and is not committed, and write nothing more."""
        self.loaded = False
        self._disarm()
        self._log.close()
        self._runner.drop(error)

    def absence(self) -> Refusal:
        """Return what is said to those who ask while it is not there: each time another one, since whatever is raised
        grows by its traceback."""
        damage = self.damage
        return still_loading() if damage is None else Damaged(damage.code, damage.message)

    def submit(self, command: Command[Fact, Reply]) -> "asyncio.Future[Reply]":
        """Decide now; the future ends with the reply once it rests on committed records, or with a Refusal."""
        if not self.loaded:
            return refused(self.absence())
        if self._runner.crowded:
            return refused(
                Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "Too many wait for the coordinator; try again.")
            )
        return self.tell(command)

    def tell(self, command: Command[Fact, Reply]) -> "asyncio.Future[Reply]":
        """Submit to the loaded machine what nobody can refuse."""
        reply = self._runner.submit(command)
        self._arm()
        return reply

    def dismiss(self, error: Exception) -> None:
        """Refuse those who wait for somebody else's command: none will come."""
        self.loaded = False
        self._disarm()
        self._runner.dismiss(error)

    async def close(self) -> None:
        """Wait until all that was decided is committed."""
        self._disarm()
        await self._runner.drain()

    def _log_failed(self, error: Exception) -> None:
        self.loaded = False
        self._disarm()
        self._failed(self, error)

    def _arm(self) -> None:
        """Wake the machine when it wants; a timer that is too early only looks again, which is cheaper than to move
        it with every heartbeat."""
        deadline = self._runner.machine.next_deadline() if self.loaded else None
        if deadline is None or (self._timer is not None and deadline >= self._timer_deadline):
            return
        self._disarm()
        delay = max(0.0, deadline - self._clock.monotonic())
        self._timer, self._timer_deadline = asyncio.get_running_loop().call_later(delay, self._wake), deadline

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake(self) -> None:
        self._timer = None
        deadline = self._runner.machine.next_deadline()
        if deadline is not None and deadline <= self._clock.monotonic():
            try:
                self._runner.submit(self._woken)
            except Exception as error:  # it would come again at once, for ever: begin anew with what the log says
                contained("deadlines of a coordinator", error)
                self._runner.drop(Refusal(ErrorCode.NOT_COORDINATOR, "the coordinator is read again; try again"))
                return
        self._arm()


def still_loading() -> Refusal:
    """Return what is said to those who ask a shard that is reading its log."""
    return Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "The coordinator is reading its log; try again.")
