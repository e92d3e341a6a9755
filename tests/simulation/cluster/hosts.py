"""A simulated host and the process that runs on it: started, stopped, killed, without power, standing still.

The disk outlives the process; a life has its loop, its clock and its streams, and nothing of an earlier one reaches
the disk or the network.
"""

import asyncio
import errno
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, Final, TypeVar

from riverlog.client.ports import Ports
from riverlog.controller.broker_session import NotRegistered
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ports import Workers
from riverlog.model.settings import NodeSettings
from riverlog.node import Node
from riverlog.node_controller import NotJoined
from riverlog.node_world import World
from tests.simulation.cluster.universe import ProcessLoop, Universe
from tests.simulation.cluster.wires import HostNetwork, Wires
from tests.simulation.machine import OneLife, SteppingWorkers
from tests.support.disk import Crashed, MemoryDisk
from tests.support.world import SECRET

T = TypeVar("T")
_WALL_MS: Final = 1_700_000_000_000
SKEW_SECONDS_MAX: Final = 5_000.0


class ProcessClock:
    """The Clock port of one process; it stops with it."""

    def __init__(self, loop: ProcessLoop, host: "Host") -> None:
        self._loop = loop
        self._host = host

    def monotonic(self) -> float:
        if self._loop.is_dead:
            raise Crashed
        return self._loop.time()

    def wall_ms(self) -> int:
        if self._loop.is_dead:
            raise Crashed
        return _WALL_MS + int((self._loop.now + self._host.wall_ahead_seconds) * 1000)


class ProcessWorkers:
    """The Workers port of one process: work begins a little later, and its end is told a little later still."""

    def __init__(self, loop: ProcessLoop, host: "NodeHost") -> None:
        self._loop = loop
        self._host = host

    def run(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        done: asyncio.Future[T] = self._loop.create_future()
        self._loop.call_later(self._seconds(), self._work, work, done)
        return done

    def close(self) -> None:
        """Nothing runs beside the loop here."""

    def _work(self, work: Callable[[], T], done: "asyncio.Future[T]") -> None:
        later = self._seconds()
        try:
            result = work()
        except Exception as error:
            self._loop.call_later(later, _fail, done, error)
        else:
            self._loop.call_later(later, _succeed, done, result)

    def _seconds(self) -> float:
        return self._host.random.random() * self._host.worker_seconds_max


class Host:
    """A machine on the network; `loop` is the one of the process that runs on it, if any."""

    def __init__(self, name: str, universe: Universe, wires: Wires, seed: int) -> None:
        self.name = name
        self.universe = universe
        self.wires = wires
        self.random = Random(f"{seed} {name}")
        self.wall_ahead_seconds = 0.0
        self.loop: ProcessLoop | None = None

    @property
    def is_up(self) -> bool:
        return self.loop is not None

    def begin(self) -> ProcessLoop:
        """Begin a process; each has another idea of the time."""
        assert self.loop is None
        self.loop = self.universe.new_loop(self.random.random() * SKEW_SECONDS_MAX)
        return self.loop

    def ports(self) -> Ports:
        """Return what a client on this host is given."""
        assert self.loop is not None
        return Ports(HostNetwork(self.wires, self.name, self.loop), ProcessClock(self.loop, self), self.random)

    def pause(self, seconds: float) -> None:
        """Make the process stand still, as SIGSTOP does."""
        if self.loop is not None:
            self.loop.stands_still_until = max(self.loop.stands_still_until, self.universe.now + seconds)

    def end(self, *, power_lost: bool = False) -> None:
        """End the process, without a word."""
        if self.loop is not None:
            loop, self.loop = self.loop, None
            self.wires.process_ended(loop, power_lost=power_lost)
            self.universe.drop(loop)


class NodeHost(Host):
    """A host with a node's disk. A node that ends is started again after a while, by whoever looks after it."""

    def __init__(
        self,
        node_id: int,
        universe: Universe,
        wires: Wires,
        seed: int,
        *,
        disk: MemoryDisk,
        settings: Callable[[], NodeSettings],
        blame: Callable[[str], None],
        steps_in_work: bool = False,
    ) -> None:
        """Describe a host. With `steps_in_work` the loop goes on between any two calls to the disk of a worker."""
        super().__init__(f"n{node_id}", universe, wires, seed)
        self.id = node_id
        self.disk = disk
        self.disk.before_step = self._step
        self.node: Node | None = None
        self.is_serving = False
        self.lives = 0
        self.worker_seconds_max = 0.004
        self.ended: Callable[[NodeHost], None] = lambda _host: None
        """Called when the process has ended by itself, or was asked to."""
        self.crashed: Callable[[NodeHost], None] = lambda _host: None
        """Called when the power failed at a call to the disk."""
        self._settings = settings
        self._blame = blame
        self._crash_in: int | None = None
        self._stall: tuple[int, float] | None = None
        self._is_looked_at = False
        self._steps_in_work = steps_in_work
        self._threads: SteppingWorkers | None = None

    def start(self) -> None:
        """Start the node."""
        if self.is_up:
            return
        self.lives += 1
        self.is_serving = False
        loop = self.begin()
        self.wires.power_returned(self.name)
        loop.set_exception_handler(self._unexpected)
        loop.create_task(self._live(loop))

    def kill(self) -> None:
        """End the process now, as kill -9 does."""
        self._gone()
        self.disk.kill()
        self.end()

    def lose_power(self) -> None:
        """Lose the power now: what was not synced is gone, and nobody is told."""
        self._gone()
        self.wires.without_power.add(self.name)
        self.disk.crash()
        self.end(power_lost=True)

    def lose_power_after(self, steps: int) -> None:
        """Lose the power at a call to the disk."""
        self._crash_in = steps

    def stall_after(self, steps: int, seconds: float) -> None:
        """Make the process stand still in the middle of a turn, at a call to the disk."""
        self._stall = (steps, seconds)

    def fill_disk(self, steps: int, seconds: float) -> None:
        """Have no room on the disk for a while, from one of the next writes on."""
        self.disk.fail(steps, errno.ENOSPC, on=("write",), lasting=True)
        self.universe.after(seconds, self.disk.heal)

    def stop(self) -> None:
        """Ask the node to end in good order."""
        if self.loop is not None and self.node is not None and self.is_serving:
            self.is_serving = False
            self.loop.create_task(self._stop(self.loop, self.node))

    def heal(self) -> None:
        """End all trouble that is still to come."""
        self._crash_in = self._stall = None
        self.worker_seconds_max = 0.004
        self.disk.heal()

    def look(self, reading: Callable[[], T]) -> T:
        """Read the disk as if nobody did."""
        self._is_looked_at = True
        try:
            return reading()
        finally:
            self._is_looked_at = False

    async def _live(self, loop: ProcessLoop) -> None:
        workers: Workers = ProcessWorkers(loop, self)
        if self._steps_in_work:
            workers = self._threads = SteppingWorkers(self.disk, self.random)
        world = World(
            clock=ProcessClock(loop, self),
            disk=OneLife(self.disk),
            network=HostNetwork(self.wires, self.name, loop),
            workers=workers,
            random=self.random,
            secret=SECRET,
        )
        node = self.node = Node(self._settings(), world, contained=self._contained)
        try:
            await node.start()
        except (NotJoined, NotRegistered) as error:
            reason: BaseException = error
        except Exception as error:
            if loop.is_dead:
                raise
            if not _is_for_want_of_room(error):
                self._blame(f"{self.name} does not start: {error!r}")
            reason = error
        else:
            self.is_serving = True
            reason = await node.run()
            if not _is_for_want_of_room(reason):
                self._blame(f"{self.name} ended by itself: {reason!r}")
        if not loop.is_dead:
            self.universe.after(0.0, lambda: self._end_by_itself(loop))

    async def _stop(self, loop: ProcessLoop, node: Node) -> None:
        await node.stop()
        self.universe.after(0.0, lambda: self._end_by_itself(loop))

    def _end_by_itself(self, loop: ProcessLoop) -> None:
        if self.loop is loop:
            self.kill()
            self.ended(self)

    def _gone(self) -> None:
        self.node = None
        self.is_serving = False
        self._crash_in = self._stall = None
        if self._threads is not None:  # one of them may be where this is called
            self.universe.after(0.0, self._threads.abandon)
            self._threads = None

    def _step(self, _kind: str, _path: str) -> None:
        """Before each call to the disk: let the power fail, or time pass."""
        if self._is_looked_at:
            return
        if self._threads is not None:
            self._threads.pause()
        if self.loop is None:
            return
        if self._stall is not None:
            steps, seconds = self._stall
            self._stall = (steps - 1, seconds) if steps else None
            if not steps:
                self.pause(seconds)
        if self._crash_in is not None:
            self._crash_in -= 1
            if self._crash_in < 0:
                self.lose_power()
                self.crashed(self)
                raise Crashed

    def _contained(self, doing: str, error: BaseException) -> None:
        if not isinstance(error, Crashed | asyncio.CancelledError) and self.is_up:
            self._blame(f"{self.name}, {doing}: {error!r}")

    def _unexpected(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, Crashed) and self.is_up:
            self._blame(f"{self.name}: {context['message']} {error!r}")


class ClientHost(Host):
    """A host whose process does one thing."""

    def __init__(self, name: str, universe: Universe, wires: Wires, seed: int, *, blame: Callable[[str], None]) -> None:
        super().__init__(name, universe, wires, seed)
        self._blame = blame

    def do(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Begin to do something."""
        loop = self.loop or self.begin()
        loop.set_exception_handler(self._unexpected)
        task = loop.create_task(work)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: "asyncio.Task[Any]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._blame(f"{self.name} failed: {error!r}")

    def _unexpected(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._blame(f"{self.name}: {context['message']} {context.get('exception')!r}")


def _is_for_want_of_room(error: BaseException) -> bool:
    is_refused = isinstance(error, Refusal) and error.code is ErrorCode.KAFKA_STORAGE_ERROR
    return is_refused or (isinstance(error, OSError) and error.errno == errno.ENOSPC)


def _succeed(done: "asyncio.Future[T]", result: T) -> None:
    if not done.done():
        done.set_result(result)


def _fail(done: "asyncio.Future[T]", error: Exception) -> None:
    if not done.done():
        done.set_exception(error)
