"""Other processes for work that would hold up the loop, started when it comes.

The work is sent to a fresh interpreter, which finds the same modules and sends back each result as it is there. One
that is done is kept for a moment, because work often comes in a row. The starter's own program is not run again, as
multiprocessing would do. A process whose starter has died ends at once: its standard input is closed.
"""

import asyncio
import os
import sys
import threading
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from struct import Struct
from typing import BinaryIO, Final, TypeVar

T = TypeVar("T")

_SIZE: Final = Struct(">I")
_NICENESS: Final = 5
_IDLE_SECONDS_MAX: Final = 2.0
_PROGRAM: Final = "from riverlog.world.processes import serve; serve()"


class SystemProcesses:
    """The Processes port over processes of the operating system. Work and results must be picklable."""

    def __init__(self) -> None:
        self._idle: dict[Process, asyncio.Task[None]] = {}  # with the task that will end it

    async def stream(self, work: Callable[[], Iterator[T]]) -> AsyncGenerator[T, None]:
        import pickle  # here, because most nodes start without needing it

        process = self._take_idle() or await _start()
        assert process.stdin is not None
        assert process.stdout is not None
        done = False
        try:
            message = pickle.dumps(work)
            process.stdin.write(_SIZE.pack(len(message)) + message)
            while True:
                try:
                    (size,) = _SIZE.unpack(await process.stdout.readexactly(_SIZE.size))
                    kind, result = pickle.loads(await process.stdout.readexactly(size))
                except asyncio.IncompleteReadError:
                    raise ChildProcessError("the process ended without a result") from None
                if kind == "result":
                    yield result
                    continue
                done = True
                if kind == "error":
                    raise result
                return
        finally:
            if done:
                self._idle[process] = asyncio.get_running_loop().create_task(self._end_idle(process))
            else:
                await _end(process)

    async def close(self) -> None:
        """End the processes that wait for more."""
        while self._idle:
            process, ending = self._idle.popitem()
            ending.cancel()
            await _end(process)

    def _take_idle(self) -> Process | None:
        while self._idle:
            process, ending = self._idle.popitem()
            ending.cancel()
            if process.returncode is None:
                return process
        return None

    async def _end_idle(self, process: Process) -> None:
        await asyncio.sleep(_IDLE_SECONDS_MAX)
        del self._idle[process]
        await _end(process)


async def _start() -> Process:
    try:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-c",
            _PROGRAM,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)},  # what is here is there
            start_new_session=True,  # Ctrl-C is for the starter alone
        )
    except OSError as error:
        raise ChildProcessError(f"no process could be started: {error}") from error


async def _end(process: Process) -> None:
    assert process.stdin is not None
    with suppress(ProcessLookupError):
        process.kill()
    process.stdin.close()
    await process.wait()


def serve() -> None:
    """Do the work that comes on standard input; this is what the other process runs."""
    import pickle

    outgoing = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not garble the results
    os.nice(_NICENESS)
    works: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=[works], daemon=True).start()
    while True:
        work: Callable[[], Iterator[object]] = pickle.loads(works.get())
        try:
            for result in work():
                _send(outgoing, pickle.dumps(("result", result)))
            _send(outgoing, pickle.dumps(("end", None)))
        except Exception as error:
            _send(outgoing, pickle.dumps(("error", error)))


def _send(outgoing: BinaryIO, message: bytes) -> None:
    outgoing.write(_SIZE.pack(len(message)) + message)
    outgoing.flush()


def _listen(works: "SimpleQueue[bytes]") -> None:
    """Read what the starter sends, until it closes its end or dies."""
    incoming = sys.stdin.buffer
    while size := incoming.read(_SIZE.size):
        works.put(incoming.read(_SIZE.unpack(size)[0]))
    os._exit(1)
