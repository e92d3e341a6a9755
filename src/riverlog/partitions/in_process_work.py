"""Work for other processes, done here where there are none."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from itertools import islice
from typing import TypeVar

from riverlog.model.ports import Workers

T = TypeVar("T")


class InProcessWork:
    """The Processes port for a world that has none: each step of the work is done by the workers."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    async def stream(self, work: Callable[[], Iterator[T]]) -> AsyncGenerator[T, None]:
        results = work()
        while step := await to_its_end(self._workers.run(lambda: list(islice(results, 1)))):
            yield step[0]

    async def close(self) -> None:
        """Do nothing: nothing runs beside the workers."""


async def to_its_end(running: Awaitable[T]) -> T:
    """Wait for work to end, even if its result is not wanted any more: a thread cannot be ended."""
    work = asyncio.ensure_future(running)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        work.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody is left to look
        await asyncio.wait([work])  # this may be cancelled too
        raise
