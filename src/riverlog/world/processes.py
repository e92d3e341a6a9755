"""Other processes for work that would hold up the loop, one per piece of work, started when it comes.

The work is sent to a fresh interpreter, which sends back each result as it is there and ends. Neither the program that
was started nor its arguments are run again, as multiprocessing would. A process whose starter has died ends at
once: its standard input is closed.
"""

import asyncio
import os
import pickle
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from struct import Struct
from typing import BinaryIO, Final, TypeVar

T = TypeVar("T")

_SIZE: Final = Struct(">I")
_NICENESS: Final = 5
_PROGRAM: Final = "from riverlog.world.processes import serve; serve()"


class SystemProcesses:
    """The Processes port over processes of the operating system. Work and results must be picklable."""

    async def stream(self, work: Callable[[], Iterator[T]]) -> AsyncGenerator[T, None]:
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", _PROGRAM, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
        except OSError as error:
            raise ChildProcessError(f"no process could be started: {error}") from error
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            message = pickle.dumps(work)
            process.stdin.write(_SIZE.pack(len(message)) + message)
            while True:
                try:
                    (size,) = _SIZE.unpack(await process.stdout.readexactly(_SIZE.size))
                    kind, result = pickle.loads(await process.stdout.readexactly(size))
                except asyncio.IncompleteReadError:
                    raise ChildProcessError("the process ended without a result") from None
                if kind == "end":
                    return
                if kind == "error":
                    raise result
                yield result
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            process.stdin.close()
            await process.wait()


def serve() -> None:
    """Do the work that comes on standard input; this is what the other process runs."""
    incoming, outgoing = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not garble the results
    os.nice(_NICENESS)
    (size,) = _SIZE.unpack(incoming.read(_SIZE.size))
    work: Callable[[], Iterator[object]] = pickle.loads(incoming.read(size))
    threading.Thread(target=_end_with, args=(incoming,), daemon=True).start()
    try:
        for result in work():
            _send(outgoing, "result", result)
        _send(outgoing, "end", None)
    except Exception as error:
        _send(outgoing, "error", error)


def _send(outgoing: BinaryIO, kind: str, content: object) -> None:
    message = pickle.dumps((kind, content))
    outgoing.write(_SIZE.pack(len(message)) + message)
    outgoing.flush()


def _end_with(incoming: BinaryIO) -> None:
    """Wait until the starter closes its end, or dies."""
    incoming.read()
    os._exit(1)
