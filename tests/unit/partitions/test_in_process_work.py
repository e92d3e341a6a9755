"""Work for other processes, done by the workers."""

import asyncio
import gc
from collections.abc import Iterator
from random import Random

import pytest

from riverlog.partitions.in_process_work import InProcessWork, to_its_end
from tests.support.virtual_time import run
from tests.support.world import PatientWorkers


def numbers() -> Iterator[int]:
    yield 1
    yield 2
    raise OSError("the disk is gone")


async def test_results_come_one_by_one_and_errors_as_they_are() -> None:
    processes = InProcessWork(PatientWorkers(Random(0)))
    results = processes.stream(numbers)
    assert [await anext(results), await anext(results)] == [1, 2]
    with pytest.raises(OSError, match="the disk is gone"):
        await anext(results)
    await processes.close()


@pytest.mark.parametrize("impatient", [False, True])
def test_work_ends_before_whoever_was_cancelled_and_its_error_is_nobodys(impatient: bool) -> None:
    unhandled: list[object] = []

    async def cancelled() -> None:
        work: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = asyncio.create_task(to_its_end(work))
        await asyncio.sleep(1)
        waiting.cancel()
        await asyncio.sleep(1)
        assert not waiting.done()
        if impatient:
            waiting.cancel()
            await asyncio.wait([waiting])
        work.set_exception(OSError("the disk is gone"))
        await asyncio.wait([waiting])
        assert waiting.cancelled()

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unhandled.append(context))
        await cancelled()
        gc.collect()

    run(scenario())
    assert unhandled == []
