"""Work beside the loop: its result, its exception, and its thread."""

import asyncio
import threading

import pytest

from riverlog.world.workers import ThreadWorkers


def test_work_runs_elsewhere_and_comes_back() -> None:
    async def scenario() -> None:
        workers = ThreadWorkers(2)
        here = threading.get_ident()
        assert await workers.run(threading.get_ident) != here
        with pytest.raises(ZeroDivisionError):
            await workers.run(lambda: 1 // 0)
        workers.close()

    asyncio.run(scenario())
