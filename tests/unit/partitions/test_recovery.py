"""Recovery beside the loop: who is asked for comes first, and nobody waits for ever."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from random import Random
from typing import TypeVar

from riverlog.log.log import Log
from riverlog.log.recovery.process_opening import LogOpening
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import Offset, TopicPartition
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from riverlog.partitions.in_process_work import InProcessWork
from riverlog.partitions.limits import RECOVERED_BY_THREADS_BYTES_MAX, RECOVERY_STEP_BYTES, RECOVERY_WAIT_SECONDS_MAX
from riverlog.partitions.recovery import Recovering, Recovery
from tests.support.disk import MemoryDisk
from tests.support.world import PatientWorkers

T = TypeVar("T")


class Mortal(InProcessWork):
    """Processes that die after the first result, or take their time."""

    def __init__(self, *, dies: bool = False, seconds: float = 0.0) -> None:
        super().__init__(PatientWorkers(Random(0)))
        self.streams = 0
        self._dies = dies
        self._seconds = seconds

    async def stream(self, work: Callable[[], Iterator[T]]) -> AsyncGenerator[T, None]:
        self.streams += 1
        await asyncio.sleep(self._seconds)
        async for result in super().stream(work):
            yield result
            if self._dies:
                raise ChildProcessError("killed")


class Room:
    """A recovery and what it has opened, in order."""

    def __init__(self, *, lanes: int = 1, processes: Mortal | None = None) -> None:
        self.opened: list[TopicPartition] = []
        self.processes = processes or Mortal()
        self.recovery = Recovery(MemoryDisk(), PatientWorkers(Random(0)), self.processes, lanes=lanes)

    def note(self, name: TopicPartition, result: Log | OSError) -> None:
        assert isinstance(result, Log)
        assert name not in self.recovery
        self.opened.append(name)

    def add(self, number: int, size: int = RECOVERY_STEP_BYTES) -> TopicPartition:
        name = TopicPartition("orders", number)
        config = DEFAULT_TOPIC_CONFIG
        self.recovery.add(
            LogOpening(name, f"/{name}", config, Offset(0), False, 0, Offset(0), Offset(0), False, False), size
        )
        return name

    async def run_for(self, seconds: float) -> None:
        task = asyncio.create_task(self.recovery.run(self.note))
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.wait([task])


async def test_who_is_asked_for_comes_first() -> None:
    room = Room()
    names = [room.add(number) for number in range(4)]
    waiting = room.recovery.ask(names[2])
    assert isinstance(waiting, Recovering)
    await room.run_for(1)
    assert room.opened == [names[2], names[0], names[1], names[3]]
    assert waiting.until.done()


async def test_some_wait_for_as_long_as_it_takes() -> None:
    room = Room(processes=Mortal(seconds=3 * RECOVERY_WAIT_SECONDS_MAX))
    names = [room.add(number) for number in range(3)]
    task = asyncio.create_task(room.recovery.run(room.note))
    await room.recovery.wait(names[1])
    await asyncio.sleep(0)
    assert room.opened == [names[1]]
    task.cancel()
    await asyncio.wait([task])


async def test_little_work_is_not_worth_a_process_and_is_done_together() -> None:
    room = Room()
    names = [room.add(number, 1_000) for number in range(10)]
    await room.run_for(1)
    assert room.opened == names
    assert room.processes.streams == 0
    room.add(10, RECOVERED_BY_THREADS_BYTES_MAX + 1)
    await room.run_for(1)
    assert room.processes.streams == 1


async def test_what_a_process_that_died_has_left_is_done_by_threads() -> None:
    room = Room(processes=Mortal(dies=True))
    names = [room.add(number, RECOVERY_STEP_BYTES // 3) for number in range(3)]
    await room.run_for(1)
    assert room.opened == names
    assert room.processes.streams == 1


async def test_who_has_waited_long_enough_is_told_to_try_again() -> None:
    room = Room(processes=Mortal(seconds=3 * RECOVERY_WAIT_SECONDS_MAX))
    name = room.add(0)
    waiting = room.recovery.ask(name)
    assert isinstance(waiting, Recovering)
    task = asyncio.create_task(room.recovery.run(room.note))
    await waiting.until
    refusal = room.recovery.ask(name)
    assert isinstance(refusal, Refusal)
    assert refusal.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    await asyncio.sleep(3 * RECOVERY_WAIT_SECONDS_MAX)
    assert room.opened == [name]
    task.cancel()
    await asyncio.wait([task])


async def test_a_log_is_given_up_at_once_or_when_the_work_on_it_ends() -> None:
    room = Room(processes=Mortal(seconds=1))
    first, second = room.add(0), room.add(1)
    task = asyncio.create_task(room.recovery.run(room.note))
    await asyncio.sleep(0.5)
    await room.recovery.settled(second)
    assert second not in room.recovery
    assert first in room.recovery
    await room.recovery.settled(first)
    assert first not in room.recovery
    await room.recovery.settled(first)
    await asyncio.sleep(5)
    assert room.opened == [first]
    task.cancel()
    await asyncio.wait([task])


async def test_a_mistake_of_our_own_is_told_and_the_next_log_is_recovered() -> None:
    room, told = Room(), list[BaseException]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
    mistaken = room.add(0)

    def note(name: TopicPartition, result: Log | OSError) -> None:
        if name == mistaken:
            raise TypeError
        room.note(name, result)

    running = asyncio.ensure_future(room.recovery.run(note))
    await asyncio.sleep(10)
    assert [type(error) for error in told] == [TypeError]
    await room.recovery.wait(room.add(1))
    assert not running.done()
    running.cancel()
