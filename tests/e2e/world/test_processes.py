"""Work in other processes: results as they come, errors as they are, and nothing left running."""

import asyncio
import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import aclosing
from functools import partial

import pytest

from riverlog.model.errors import ErrorCode, Refusal
from riverlog.records.errors import BatchTooLarge
from riverlog.world.processes import SystemProcesses
from tests.support.waiting import until


def number_and_wait() -> Iterator[int]:
    print("this must not get between the results")
    yield os.getpid()
    threading.Event().wait()


def raising(error: Exception) -> Iterator[int]:
    yield from ()
    raise error


def die() -> Iterator[int]:
    yield 1
    os._exit(3)


async def collected(work: "partial[Iterator[int]]") -> list[int]:
    processes = SystemProcesses()
    try:
        return [result async for result in processes.stream(work)]
    finally:
        await processes.close()


def test_results_come_one_by_one() -> None:
    assert asyncio.run(collected(partial(map, abs, (0, -1, -2)))) == [0, 1, 2]


def test_the_disk_s_error_arrives_as_it_was() -> None:
    with pytest.raises(OSError, match="full") as raised:
        asyncio.run(collected(partial(raising, OSError(errno.ENOSPC, "full", "/data"))))
    assert raised.value.errno == errno.ENOSPC


def test_a_refusal_of_any_kind_arrives_as_a_refusal() -> None:
    with pytest.raises(Refusal, match="the most that is allowed") as raised:
        asyncio.run(collected(partial(raising, BatchTooLarge(7))))
    assert raised.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_a_process_that_dies_is_an_error() -> None:
    with pytest.raises(ChildProcessError):
        asyncio.run(collected(partial(die)))


def process_id() -> Iterator[int]:
    yield os.getpid()


def test_work_in_a_row_is_done_by_one_process_until_it_is_closed() -> None:
    async def scenario() -> list[int]:
        processes = SystemProcesses()
        ids = [found for _ in range(3) async for found in processes.stream(process_id)]
        with pytest.raises(ZeroDivisionError):
            await anext(processes.stream(partial(raising, ZeroDivisionError())))
        ids += [found async for found in processes.stream(process_id)]
        await processes.close()
        return ids

    first, *others = asyncio.run(scenario())
    assert others == [first, first, first]
    assert not runs(first)


def test_closing_the_stream_ends_the_work() -> None:
    async def scenario() -> int:
        async with aclosing(SystemProcesses().stream(number_and_wait)) as results:
            async for process_id in results:
                return process_id
        raise AssertionError

    process_id = asyncio.run(scenario())
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)


def test_a_process_ends_with_its_starter() -> None:
    program = (
        "import asyncio\n"
        "from riverlog.world.processes import SystemProcesses\n"
        "from tests.e2e.world.test_processes import number_and_wait\n"
        "async def main():\n"
        "    async for process_id in SystemProcesses().stream(number_and_wait):\n"
        "        print(process_id, flush=True)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        process_id = int(starter.stdout.readline())
        starter.kill()
    until(lambda: not runs(process_id), lambda: f"process {process_id} outlives who started it")


def runs(process_id: int) -> bool:
    """Return whether a process is there and not merely waiting for somebody to ask how it ended."""
    asked = subprocess.run(["ps", "-o", "stat=", "-p", str(process_id)], capture_output=True, text=True, check=False)
    return asked.stdout.strip() not in ("", "Z")
