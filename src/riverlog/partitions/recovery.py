"""Recovery at work: logs that a crash left unfinished are opened beside the loop, those that are asked for first.

Each directory has a few lanes (`num.recovery.threads.per.data.dir`). A lane takes some logs at a time and has them
opened in another process, or by threads where there is little to read. Whoever needs one of them meanwhile gets
`Recovering` and comes again when it is there, or after a bounded wait.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import TypeAlias

from riverlog.log.log import Log
from riverlog.log.recovery.process_opening import LogOpening, open_logs
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import TopicPartition
from riverlog.model.ports import Disk, Processes, Workers
from riverlog.observe.containment import contained
from riverlog.observe.logging import get_logger
from riverlog.partitions.in_process_work import InProcessWork
from riverlog.partitions.limits import (
    RECOVERED_BY_THREADS_BYTES_MAX,
    RECOVERY_STEP_BYTES,
    RECOVERY_STEP_LOGS_MAX,
    RECOVERY_WAIT_SECONDS_MAX,
)
from riverlog.partitions.retry_later import RetryLater

OpenedCallback: TypeAlias = Callable[[TopicPartition, Log | OSError], None]


class Recovering(RetryLater):
    """A partition that is being recovered cannot be used yet."""


class _PendingLog:
    """A log to be opened elsewhere."""

    __slots__ = ("asked_for", "finished", "opening", "size", "taken")

    def __init__(self, opening: LogOpening, size: int) -> None:
        self.opening = opening
        self.size = size
        self.taken = False
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.asked_for: asyncio.Future[None] | None = None  # by a request; done when it has waited long enough


class Recovery:
    """The recovery of one log directory."""

    def __init__(self, disk: Disk, workers: Workers, processes: Processes, *, lanes: int) -> None:
        self._disk = disk
        self._threads = InProcessWork(workers)
        self._processes = processes
        self._lanes = lanes
        self._wanted: OrderedDict[TopicPartition, _PendingLog] = OrderedDict()  # those asked for lately first
        self._more = asyncio.Event()
        self._log = get_logger("riverlog.recovery")

    def __contains__(self, name: TopicPartition) -> bool:
        return name in self._wanted

    def add(self, opening: LogOpening, size: int) -> None:
        """Add a log whose opening must read this many bytes."""
        assert opening.partition not in self._wanted
        self._wanted[opening.partition] = _PendingLog(opening, size)
        self._more.set()

    def ask(self, name: TopicPartition) -> Exception:
        """Recover a log before all others, and return what to raise to whoever needs it."""
        wanted = self._wanted[name]
        if wanted.asked_for is None:
            self._wanted.move_to_end(name, last=False)
            loop = asyncio.get_running_loop()
            wanted.asked_for = loop.create_future()
            loop.call_later(RECOVERY_WAIT_SECONDS_MAX, _finish, wanted.asked_for)
        if wanted.asked_for.done():
            return Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{name} is being recovered; try again")
        return Recovering(wanted.asked_for)

    async def wait(self, name: TopicPartition) -> None:
        """Recover a log before all others, and wait for it as long as it takes."""
        self._wanted.move_to_end(name, last=False)
        await asyncio.shield(self._wanted[name].finished)

    async def settled(self, name: TopicPartition) -> None:
        """Abandon a log, and wait until nobody is at work on it."""
        wanted = self._wanted.get(name)
        if wanted is None:
            return
        if not wanted.taken:
            self._finish(name)
        else:
            await asyncio.shield(wanted.finished)

    async def run(self, opened: OpenedCallback) -> None:
        """Recover whatever is added, for ever; report every log, and every error of the disk, to `opened`."""
        async with asyncio.TaskGroup() as lanes:
            for _ in range(self._lanes):
                lanes.create_task(self._lane(opened))

    async def _lane(self, opened: OpenedCallback) -> None:
        while True:
            step = self._take()
            if not step:
                self._more.clear()
                await self._more.wait()
                continue
            size = sum(wanted.size for wanted in step)
            processes = self._threads if size <= RECOVERED_BY_THREADS_BYTES_MAX else self._processes
            try:
                await self._open(step, processes, opened)
            except Exception as error:  # the next request for one of these logs opens it again
                contained("recovery", error)

    def _take(self) -> list[_PendingLog]:
        """Take the next logs that nobody is at work on."""
        step: list[_PendingLog] = []
        size = 0
        for wanted in self._wanted.values():
            if not wanted.taken:
                wanted.taken = True
                step.append(wanted)
                size += wanted.size
                if size >= RECOVERY_STEP_BYTES or len(step) == RECOVERY_STEP_LOGS_MAX:
                    break
        return step

    async def _open(self, step: list[_PendingLog], processes: Processes, opened: OpenedCallback) -> None:
        names = [wanted.opening.partition for wanted in step]
        work = partial(open_logs, self._disk, [wanted.opening for wanted in step])
        try:
            async with aclosing(processes.stream(work)) as results:
                async for name, result in results:
                    names.remove(name)
                    self._finish(name)
                    opened(name, result)
        except ChildProcessError as error:
            self._log.warning("recovery goes on without another process", detail=str(error))
            rest = [wanted for wanted in step if wanted.opening.partition in names]
            names.clear()
            await self._open(rest, self._threads, opened)
        finally:
            for name in names:  # the node stops: nobody is at work on them any more
                self._finish(name)

    def _finish(self, name: TopicPartition) -> None:
        wanted = self._wanted.pop(name)
        _finish(wanted.finished)
        if wanted.asked_for is not None:
            # In the next turn of the loop: whoever waits finds what is reported to `opened` in this one.
            _finish(wanted.asked_for)


def _finish(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
