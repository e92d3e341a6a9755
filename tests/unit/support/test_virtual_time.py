"""Virtual time: it jumps, and what can never end is found out."""

import asyncio

import pytest

from tests.support import virtual_time
from tests.support.virtual_time import run


def test_an_hour_takes_no_time() -> None:
    async def scenario() -> float:
        begun = asyncio.get_running_loop().time()
        await asyncio.sleep(3_600)
        return asyncio.get_running_loop().time() - begun

    assert run(scenario()) == 3_600


def test_circles_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_time, "TURNS_WITHOUT_TIME_MAX", 100)

    async def wait_in_vain() -> None:
        while True:  # noqa: ASYNC110 - that is the point
            await asyncio.sleep(0)

    async def work() -> None:
        for _ in range(1_000):
            await asyncio.sleep(0.001)

    run(work())
    with pytest.raises(AssertionError, match="something runs in circles"):
        run(wait_in_vain())


def test_a_wait_that_nothing_can_end_is_found_out() -> None:
    async def wait_for_nobody() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(AssertionError, match="nothing is left that could wake one"):
        run(wait_for_nobody())
