"""Retries of a sink while its cluster cannot be reached: a restart of a broker is a pause, not an end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, TypeVar

from riverlog.client.errors import Unreachable
from riverlog.client.lifetime import Startable

_PAUSE_SECONDS: Final = 0.2

T = TypeVar("T")
S = TypeVar("S", bound=Startable)


async def start_with_patience(start: Callable[[], Awaitable[T]], *, seconds_max: float) -> T:
    """Start something that needs the cluster, again and again while nobody answers; Unreachable in the end."""
    deadline = asyncio.get_running_loop().time() + seconds_max
    while True:
        try:
            return await start()
        except Unreachable:
            if asyncio.get_running_loop().time() + _PAUSE_SECONDS > deadline:
                raise
        await asyncio.sleep(_PAUSE_SECONDS)


@asynccontextmanager
async def started(part: S, *, seconds_max: float) -> AsyncIterator[S]:
    """Use a part of the client within a block, once the cluster is reached."""
    await start_with_patience(part.start, seconds_max=seconds_max)
    async with AsyncExitStack() as ending:
        ending.push_async_exit(part)
        yield part
