"""The machine that a simulated node runs on: it loses power, kills its processes, and starts the node again.

The node's tasks, files and streams end with it; the clients are other machines and live on. `crash_after` lets the
power fail at the n-th call to the disk, also in the middle of a flush or of a recovery: from that moment on nothing
leaves the machine. Whatever the node does that it may not do is told to `blame`.
"""

import _thread
import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final, TypeVar

import riverlog
from riverlog.client.ports import Ports
from riverlog.controller.storage import METADATA_FOLDER
from riverlog.log.directory import CLEAN_FILE
from riverlog.log.identity import DirectoryRefused
from riverlog.model.disk_errors import DiskTrouble, judge
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ports import Clock
from riverlog.model.resolution import configure
from riverlog.node import Node
from riverlog.node_world import World
from riverlog.runner import Stopped
from tests.simulation import mistakes
from tests.simulation.mistakes import Mistake, Mistakes
from tests.support.disk import Crashed, MemoryDisk
from tests.support.network import MemoryNetwork, MemorySocket
from tests.support.virtual_time import VirtualClock

T = TypeVar("T")

ADDRESS: Final = "node:9092"
_POWER_BACK_SECONDS: Final = 0.05
_PACES: Final = (0.1, 1.0, 1.0, 10.0)
_HOPELESS_SECONDS: Final = 10.0
"""How long to wait before a node is started again that should have started and did not."""


class JumpingClock(VirtualClock):
    """A wall clock that somebody sets; the monotonic one goes on."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def wall_ms(self) -> int:
        return super().wall_ms() + self.ahead_ms


class CuttableNetwork(MemoryNetwork):
    """A network that knows its streams, so that they can be cut."""

    def __init__(self) -> None:
        super().__init__()
        self._made: list[MemorySocket] = []

    async def connect(self, host: str, port: int) -> MemorySocket:
        socket = await super().connect(host, port)
        self._made = [stream for stream in self._made if not stream.other.closed]
        self._made.append(socket)
        return socket

    def cut(self, random: Random) -> None:
        """End some streams for both sides."""
        for stream in self._made:
            if random.random() < 0.7:
                stream.end()
                stream.other.end()

    def vanish(self) -> None:
        """Remove the machine that listens: nothing is accepted, and clients see their streams end."""
        self._listeners.clear()
        for stream in self._made:
            stream.other.close()
        self._made.clear()


class SteppingWorkers:
    """The Workers port with real threads, of which one runs at a time: from one call to the disk to the next.

    Between two of these calls virtual time passes and the loop goes on, so that whatever could happen in the middle
    of a flush happens in some run. A thread whose machine is gone ends at its next call.
    """

    def __init__(self, disk: MemoryDisk, random: Random) -> None:
        self.seconds_max = 0.002
        self._random = random
        self._jobs: list[_Job] = []
        self._local = threading.local()
        self._disk = disk

    def run(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        loop = asyncio.get_running_loop()
        job = _Job(work, loop.create_future(), self._local)
        self._jobs.append(job)
        job.driver = loop.create_task(self._drive(job))
        return job.done

    def close(self) -> None:
        """Leave what is under way to `abandon`."""

    def pause(self) -> None:
        """Make the loop go on, if this is a worker's thread."""
        job: _Job | None = getattr(self._local, "job", None)
        if job is not None:
            job.pause()

    def abandon(self) -> None:
        """End all threads: their machine is gone."""
        jobs, self._jobs = self._jobs, []
        for job in jobs:
            job.machine_is_gone = True
            while not job.finished:
                job.go_on()

    async def _drive(self, job: "_Job") -> None:
        pace = self._random.choice(_PACES)  # so that what began later may well end first
        while not job.finished:
            await asyncio.sleep(self._random.random() * self.seconds_max * pace)
            if not job.finished:
                job.go_on()
        if job in self._jobs:
            self._jobs.remove(job)
            await asyncio.sleep(self._random.random() * self.seconds_max * pace)
            job.tell()


class _Job:
    """A piece of work in its thread. Either the thread runs or the loop does, never both."""

    def __init__(self, work: Callable[[], Any], done: "asyncio.Future[Any]", local: threading.local) -> None:
        self.done = done
        self.driver: asyncio.Task[None]
        self.finished = False
        self.machine_is_gone = False
        self._work = work
        self._local = local
        self._result: Any = None
        self._error: BaseException | None = None
        # Bare locks and threads: a run changes sides some thousand times, and this is what that costs.
        self._may_run = threading.Lock()
        self._may_run.acquire()
        self._has_paused = threading.Lock()
        self._has_paused.acquire()
        _thread.start_new_thread(self._run, ())

    def go_on(self) -> None:
        """Make the thread run to its next pause, or to its end."""
        self._may_run.release()
        self._has_paused.acquire()

    def pause(self) -> None:
        self._has_paused.release()
        self._may_run.acquire()
        if self.machine_is_gone:
            raise Crashed

    def tell(self) -> None:
        if self.done.done():
            return
        if self._error is None:
            self.done.set_result(self._result)
        elif not isinstance(self._error, Crashed):
            self.done.set_exception(self._error)

    def _run(self) -> None:
        self._local.job = self
        self._may_run.acquire()
        try:
            if not self.machine_is_gone:
                self._result = self._work()
        except BaseException as error:
            self._error = error
        self.finished = True
        self._has_paused.release()


class OneLife:
    """The disk as one node has it: a timer or a stream that outlives the node reaches nothing."""

    def __init__(self, disk: MemoryDisk) -> None:
        self._disk = disk
        self._life = disk.life

    def __getattr__(self, name: str) -> Any:
        if self._disk.life != self._life:
            raise Crashed
        return getattr(self._disk, name)


class ClockOfOneLife:
    """The clock as one node has it: a timer that outlives the node is told no time, and so comes to nothing."""

    def __init__(self, clock: Clock, disk: MemoryDisk) -> None:
        self._clock = clock
        self._disk = disk
        self._life = disk.life

    def monotonic(self) -> float:
        self._check()
        return self._clock.monotonic()

    def wall_ms(self) -> int:
        self._check()
        return self._clock.wall_ms()

    def _check(self) -> None:
        if self._disk.life != self._life:
            raise Crashed


class Machine:
    """Runs one node after the other on the same disk. `node` is the one that serves now, if any."""

    def __init__(self, seed: int, settings: dict[str, str], blame: Callable[[str], None]) -> None:
        self.random = Random(f"{seed} node")
        self.disk = MemoryDisk(seed)
        self.disk.before_step = self._step
        self.network = CuttableNetwork()
        self.clock = JumpingClock()
        self.workers = SteppingWorkers(self.disk, Random(f"{seed} workers"))
        self.mistakes = Mistakes()
        self.node: Node | None = None
        self.lives = 0
        self.crashes = 0
        self.kills = 0
        self.was_clean = False
        """Whether the last node ended in good order."""
        self._stopping = False
        self.on_start: Callable[[Node], None] = lambda _node: None
        self.on_power_lost: Callable[[], None] = lambda: None
        self._settings = settings
        self._blame = blame
        self._client_random = Random(f"{seed} clients")
        self._crash_in: int | None = None
        self._gone = asyncio.Event()
        self._serving = asyncio.Event()
        self._guard = asyncio.get_running_loop().create_task(self._guard_node())

    @property
    def ports(self) -> Ports:
        """What a client of the node is given."""
        return Ports(self.network, self.clock, self._client_random)

    async def serving(self) -> None:
        """Wait until the node serves."""
        await self._serving.wait()

    # -- trouble

    def lose_power(self) -> None:
        """Lose power now: the disk forgets what was not synced."""
        if not self._gone.is_set():
            self.crashes += 1
            self._vanish()
            self.disk.crash()
            self._look_for_marker()
            self.on_power_lost()

    def kill(self) -> None:
        """End the node's process now, as kill -9 does: the disk forgets nothing."""
        if self.disk.failed_syncs:
            # What a failed sync lost is still in the page cache; only a machine that starts afresh reads the truth.
            self.lose_power()
        elif not self._gone.is_set():
            self.kills += 1
            self._vanish()
            self.disk.kill()
            self._look_for_marker()

    def crash_after(self, steps: int) -> None:
        """Lose power at the call to the disk behind the next `steps` ones."""
        self._crash_in = steps

    def heal(self) -> None:
        """End all trouble of the disk that can end by itself."""
        self.disk.heal()
        self.mistakes.forget()
        self.workers.seconds_max = 0.002
        self._crash_in = None

    async def restart(self) -> None:
        """Stop the node in good order and start it again; a crash may come in between."""
        node = self.node
        if node is None:
            return
        self.node = None
        self._serving.clear()
        life = self.lives
        self._stopping = True
        stopping = asyncio.get_running_loop().create_task(node.stop())
        await asyncio.wait([stopping, gone := asyncio.ensure_future(self._gone.wait())], return_when="FIRST_COMPLETED")
        gone.cancel()
        if self.lives != life or self._gone.is_set():
            return
        if (error := stopping.exception()) is not None:
            self._blame(f"stopping raised {error!r}")
        if self.disk.failed_syncs:
            self.lose_power()
        else:
            self._vanish()
            self.disk.kill()
            self._look_for_marker()

    async def shut_down(self) -> None:
        """End the guard and whatever runs."""
        self._guard.cancel()
        await asyncio.wait([self._guard])
        self._vanish()
        await self._bury()

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Read the disk in this block as if nobody did: no time passes, and nothing fails that was to fail later."""
        disk = self.disk
        step, fails_in, steps = disk.before_step, disk.fails_in, disk.steps
        disk.before_step, disk.fails_in = lambda _kind, _path: None, None
        try:
            yield
        finally:
            disk.before_step, disk.fails_in, disk.steps = step, fails_in, steps

    # -- inside

    def _step(self, _kind: str, _path: str) -> None:
        """Before each call to the disk: let time pass, or let the power fail."""
        self.workers.pause()
        if self._gone.is_set():
            raise Crashed
        if self._crash_in is not None:
            if self._crash_in == 0:
                self._crash_in = None
                self.lose_power()
                raise Crashed
            self._crash_in -= 1

    def _look_for_marker(self) -> None:
        """A node ended in good order if it was about to stop, and came as far as to write so."""
        marked = self.disk.exists(f"/data/{CLEAN_FILE}")
        self.was_clean = marked and (self.was_clean or self._stopping)
        self._stopping = False

    def _vanish(self) -> None:
        self.network.vanish()
        self.node = None
        self._serving.clear()
        self._gone.set()

    async def _bury(self) -> None:
        """End what is left of a node that is gone."""
        self.workers.abandon()
        while tasks := [task for task in asyncio.all_tasks() if _belongs_to_node(task)]:
            # One that tidies up may wait for another that is gone: it is cancelled again, and again.
            for task in sorted(tasks, key=lambda task: int(task.get_name().rpartition("-")[2])):
                task.cancel()
            await asyncio.sleep(0)
            for task in tasks:
                if task.done() and not task.cancelled():
                    task.exception()  # whatever it was, nobody is left to care

    async def _guard_node(self) -> None:
        """Keep a node running, for ever."""
        while True:
            self._gone.clear()
            await self._live()
            self.workers.seconds_max = 0.002
            await self._bury()
            await asyncio.sleep(_POWER_BACK_SECONDS)

    async def _live(self) -> None:
        """Start a node and return when it is gone."""
        self.lives += 1
        node = self._build()
        loop = asyncio.get_running_loop()
        gone = loop.create_task(self._gone.wait())
        starting = loop.create_task(node.start())
        await asyncio.wait([gone, starting], return_when="FIRST_COMPLETED")
        if self._gone.is_set():
            return
        if (error := starting.exception()) is not None:
            no_room = isinstance(error, Refusal) and error.code is ErrorCode.KAFKA_STORAGE_ERROR
            if not no_room and (not isinstance(error, OSError) or isinstance(error, DirectoryRefused)):
                self._blame(f"the node does not start: {error!r}")
                await asyncio.sleep(_HOPELESS_SECONDS)
            self.disk.heal()
            self._stopping = True  # what it had opened, it has closed
            if isinstance(error, OSError) and judge(error) is DiskTrouble.HINDERED:
                self.kill()
            else:
                self.lose_power()
            return
        self.node = node
        self.on_start(node)
        self._serving.set()
        failed = loop.create_task(node.run())
        await asyncio.wait([gone, failed], return_when="FIRST_COMPLETED")
        if not self._gone.is_set():
            await self._judge_end(failed.result())
            self.lose_power()

    async def _judge_end(self, error: BaseException) -> None:
        """A node may end by itself only because its metadata log cannot be written."""
        if isinstance(error, Crashed):
            return
        if not (isinstance(error, OSError) and METADATA_FOLDER in str(error.filename)):
            self._blame(f"the node ended by itself: {error!r}")
            await asyncio.sleep(_HOPELESS_SECONDS)

    def _build(self) -> Node:
        doors = {"listeners": f"PLAINTEXT://{ADDRESS}", "metrics.port": "-1", "checkpoints.port": "-1"}
        given = {**doors, "log.dirs": "/data"} | self._settings
        world = World(
            clock=ClockOfOneLife(self.clock, self.disk),
            disk=OneLife(self.disk),
            network=self.network,
            workers=self.workers,
            random=self.random,
        )

        def contained(doing: str, error: BaseException) -> None:
            of_a_failed_node = isinstance(error, OSError | Stopped) and node.failure is not None  # for its metadata
            if not isinstance(error, Crashed | Mistake | asyncio.CancelledError) and not of_a_failed_node:
                self._blame(f"{doing}: {error!r}")

        settings = configure(profile="dev", flags=given).settings
        node = Node(settings, world, handlers=self.mistakes.load_handler, contained=contained)
        return node


_PACKAGE: Final = str(Path(riverlog.__file__).parent) + os.sep
_CLIENTS: Final = (_PACKAGE + "client" + os.sep, _PACKAGE + "verify" + os.sep)


def _belongs_to_node(task: "asyncio.Task[Any]") -> bool:
    code = getattr(task.get_coro(), "cr_code", None)
    if code is None:
        return False
    if code.co_filename == mistakes.__file__:  # they stand in for handlers
        return True
    return code.co_filename.startswith(_PACKAGE) and not code.co_filename.startswith(_CLIENTS)
