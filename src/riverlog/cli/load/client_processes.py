"""The client processes of `riverlog bench`: started together, let go at one moment, and never left behind.

They are out of the terminal's reach, so that Ctrl-C ends this program alone, which then ends them and tidies up.
"""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any, Final

from riverlog.cli.load.client import ClientLoad, ClientOutcome
from riverlog.cli.terminal.exits import CommandError, ExitCode
from riverlog.cli.terminal.render import ProgressCallback

COMMAND: Final = (sys.executable, "-m", "riverlog.cli.load.client")
LINE_BYTES_MAX: Final = 1024 * 1024
"""An outcome with every bucket of latencies in use takes a fifth of it."""


async def work(shares: Sequence[ClientLoad], progress: ProgressCallback) -> list[ClientOutcome]:
    """Run each load in a process of its own, all from the same moment on."""
    async with _processes(len(shares)) as processes:
        for process, share in zip(processes, shares, strict=True):
            await _tell(process, asdict(share))
        for process in processes:
            await _answer(process)  # that it is ready
        reached = [(0, 0)] * len(shares)

        def note(number: int, answer: dict[str, Any]) -> None:
            reached[number] = (answer["records"], answer["bytes"])
            progress(sum(records for records, _ in reached), sum(size for _, size in reached))

        for process in processes:
            await _tell(process, "go")
        watching = [_outcome(process, number, note) for number, process in enumerate(processes)]
        return list(await asyncio.gather(*watching))


@asynccontextmanager
async def _processes(count: int) -> AsyncIterator[list[Process]]:
    processes: list[Process] = []
    try:
        for _ in range(count):
            started = await asyncio.create_subprocess_exec(
                *COMMAND, stdin=PIPE, stdout=PIPE, limit=LINE_BYTES_MAX, start_new_session=True
            )
            processes.append(started)
        yield processes
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
        for process in processes:
            await process.wait()


async def _tell(process: Process, request: object) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(request).encode() + b"\n")
    try:
        await process.stdin.drain()
    except ConnectionError:
        pass  # its last words, or their absence, say why


async def _outcome(process: Process, number: int, note: Callable[[int, dict[str, Any]], None]) -> ClientOutcome:
    while True:
        answer = await _answer(process)
        note(number, answer)
        if "seconds" in answer:
            return ClientOutcome(**answer)


async def _answer(process: Process) -> dict[str, Any]:
    """Read one line of what a process says; raise its trouble."""
    assert process.stdout is not None
    line = await process.stdout.readline()
    if not line:
        raise CommandError(f"a client process ended with code {await process.wait()} before it had done its share")
    answer: dict[str, Any] = json.loads(line)
    if "trouble" in answer:
        raise CommandError(answer["trouble"], ExitCode(answer["exit_code"]))
    return answer
