"""Other processes for work that would hold up the loop, one per piece of work, started when it comes.

The work is sent to a fresh interpreter, which finds the same modules, sends back each result as it is there, and ends.
The starter's own program is not run again, as multiprocessing would do. A process whose starter has died ends at once:
its standard input is closed.
"""

import asyncio
import os
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
        import pickle  # here, because most nodes start without needing it

        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-c",
                _PROGRAM,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=os.environ
                | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)},  # what is here is there
                start_new_session=True,  # Ctrl-C is for the starter alone
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
    import pickle

    incoming, outgoing = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not garble the results
    os.nice(_NICENESS)
    (size,) = _SIZE.unpack(incoming.read(_SIZE.size))
    work: Callable[[], Iterator[object]] = pickle.loads(incoming.read(size))
    threading.Thread(target=_end_with_starter, daemon=True).start()
    try:
        for result in work():
            _send(outgoing, pickle.dumps(("result", result)))
        _send(outgoing, pickle.dumps(("end", None)))
    except Exception as error:
        _send(outgoing, pickle.dumps(("error", error)))


def _send(outgoing: BinaryIO, message: bytes) -> None:
    outgoing.write(_SIZE.pack(len(message)) + message)
    outgoing.flush()


def _end_with_starter() -> None:
    """Wait until the starter closes its end, or dies."""
    while os.read(0, 1):
        pass
    os._exit(1)
