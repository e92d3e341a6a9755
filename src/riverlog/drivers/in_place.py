"""Work for other processes, done here where there are none."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from itertools import islice
from typing import TypeVar

from riverlog.model.ports import Workers

T = TypeVar("T")


class InPlace:
    """The Processes port for a world that has none: each step of the work is done by the workers."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    async def stream(self, work: Callable[[], Iterator[T]]) -> AsyncGenerator[T, None]:
        results = work()
        while step := await self._finish(self._workers.run(lambda: list(islice(results, 1)))):
            yield step[0]

    async def _finish(self, running: Awaitable[list[T]]) -> list[T]:
        """Wait for a step to its end, even where nobody wants its result any more: a thread cannot be ended."""
        step = asyncio.ensure_future(running)
        try:
            return await asyncio.shield(step)
        except asyncio.CancelledError:
            await asyncio.wait([step])
            raise

    async def close(self) -> None:
        """Nothing waits here."""
