"""A loop beside the caller."""

import asyncio

import pytest

from riverlog.arrow.background_loop import BackgroundLoop


def test_work_goes_on_between_two_calls() -> None:
    async def begin() -> asyncio.Task[str]:
        return asyncio.create_task(asyncio.sleep(0, "done"))

    async def end(task: asyncio.Task[str]) -> str:
        return await task

    with BackgroundLoop("test") as background:
        assert background.run(end(background.run(begin()))) == "done"


def test_a_failure_is_the_callers() -> None:
    async def fail() -> None:
        raise KeyError("here")

    with BackgroundLoop("test") as background, pytest.raises(KeyError, match="here"):
        background.run(fail())


def test_what_still_runs_at_the_end_is_cancelled() -> None:
    cancelled: list[bool] = []

    async def wait_for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)

    async def begin() -> asyncio.Task[None]:
        task = asyncio.create_task(wait_for_ever())
        await asyncio.sleep(0)
        return task

    with BackgroundLoop("test") as background:
        task = background.run(begin())
    assert cancelled == [True]
    assert task.cancelled()
