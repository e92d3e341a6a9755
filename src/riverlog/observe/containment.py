"""Unexpected exceptions: counted, logged once with their traceback, and survived.

Whoever catches such an exception says so with `contained`, and goes on with the next request, partition or round. The
running loop's exception handler is the one place that hears of them all, together with what asyncio finds by itself: a
callback that raised, a task that nobody asks for its result. A node puts its own handler there. Only `InvariantBroken`
ends the node: a log or the metadata are no longer what they must be, and to go on could lose what was acknowledged.
"""

import asyncio
from collections.abc import Awaitable, Callable

from riverlog.observe.limits import BACKGROUND_PAUSE_SECONDS


def contained(doing: str, error: BaseException) -> None:
    """Report an exception that ends nothing but what was being done."""
    asyncio.get_running_loop().call_exception_handler({"message": doing, "exception": error})


async def keep_running(doing: str, work: Callable[[], Awaitable[None]]) -> None:
    """Do work that goes on for ever; begin it again after a pause when an exception has ended it."""
    while True:
        try:
            return await work()
        except Exception as error:
            contained(doing, error)
        await asyncio.sleep(BACKGROUND_PAUSE_SECONDS)
