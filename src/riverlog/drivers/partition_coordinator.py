"""One coordinator: the machine of one partition of an internal topic, with the timer that wakes it."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from riverlog.drivers.coordinator import Coordinator
from riverlog.drivers.partition_log import PartitionLog
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import TopicPartition
from riverlog.model.machine import ReplicatedMachine
from riverlog.model.ports import Clock
from riverlog.observe.containment import contained
from riverlog.partitions.replicas import Replicas
from riverlog.records.batch import BatchHeader
from riverlog.records.record import Record

Command = TypeVar("Command")
Fact = TypeVar("Fact")
Effect = TypeVar("Effect")


class Batches(Protocol[Fact]):
    """How the facts of a machine become batches of its topic: a module `batches.py`."""

    def encode_facts(self, facts: Sequence[Fact], now_ms: int, bytes_max: int, /) -> bytearray: ...
    def decode_facts(self, header: BatchHeader, records: Sequence[Record], /) -> Iterable[Fact]: ...


class PartitionCoordinator(Generic[Command, Fact, Effect]):
    """Runs a machine on a partition; `failed` is called when its log fails, and it is to be loaded again."""

    def __init__(
        self,
        name: TopicPartition,
        replicas: Replicas,
        clock: Clock,
        *,
        new_machine: Callable[[], ReplicatedMachine[Command, Fact, Effect]],
        batches: Batches[Fact],
        woken: Command,
        failed: Callable[[Any, Exception], None],
    ) -> None:
        self.name = name
        self.loaded = False
        self._clock = clock
        self._woken = woken
        self._failed = failed
        self._timer: asyncio.Handle | None = None
        self._timer_deadline = 0.0  # on our clock: asking the loop for its own costs more than most commands
        log = PartitionLog[Fact](name, replicas, clock, encode=batches.encode_facts, decode=batches.decode_facts)
        self._log = log
        self._coordinator: Coordinator[Command, Fact, Effect] = Coordinator(
            new_machine=new_machine,
            log=log,
            clock=clock,
            view=lambda machine: None,
            committed=lambda view, records, effects: self._carry_out(effects),
            failed=self._log_failed,
        )

    def begin(self) -> bool:
        """Begin at once if nothing was ever written; else it has to be loaded."""
        if not self._log.begun:
            self._coordinator.start()
            self.loaded = True
        return self.loaded

    async def load(self) -> None:
        """Read the log, and let the machine go on from there, before it is asked anything."""
        await self._coordinator.load()
        self.loaded = True
        self._wake()

    def submit(self, command: Command) -> "asyncio.Future[Any]":
        """Decide now."""
        if not self.loaded:
            raise Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "The coordinator is reading its log; try again.")
        if self._coordinator.crowded:
            raise Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "Too many wait for this coordinator; try again.")
        return self._tell(command)

    def dismiss(self, error: Exception) -> None:
        """Tell those who wait for somebody else's command that none will come."""
        self.loaded = False
        self._disarm()
        self._coordinator.dismiss(error)

    async def close(self) -> None:
        self._disarm()
        await self._coordinator.drain()

    def _tell(self, command: Command) -> "asyncio.Future[Any]":
        """Let the machine, which is there, decide about what nobody can refuse."""
        reply = self._coordinator.submit(command)
        self._arm()
        return reply

    def _carry_out(self, effects: tuple[Effect, ...]) -> None:
        """Do what the machine wants done."""

    def _log_failed(self, error: Exception) -> None:
        self.loaded = False
        self._disarm()
        self._failed(self, error)

    def _arm(self) -> None:
        """Wake the machine when it wants; a timer that is too early only looks again, which is cheaper than to move
        it with every heartbeat."""
        deadline = self._coordinator.machine.next_deadline() if self.loaded else None
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
        deadline = self._coordinator.machine.next_deadline()
        if deadline is not None and deadline <= self._clock.monotonic():
            try:
                self._coordinator.submit(self._woken)
            except Exception as error:  # it would come again at once, for ever: begin anew with what the log says
                contained("deadlines of a coordinator", error)
                self._coordinator.drop(Refusal(ErrorCode.NOT_COORDINATOR, "the coordinator is read again; try again"))
                return
        self._arm()
