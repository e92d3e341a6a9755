"""How late the event loop is: the time by which a timer comes after its moment, several times a second."""

import asyncio
from typing import Final

from riverlog.observe.stats import Histogram

_INTERVAL_SECONDS: Final = 0.25


async def measure_loop_lag(lags: Histogram) -> None:
    """Measure for ever."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _INTERVAL_SECONDS
        await asyncio.sleep(_INTERVAL_SECONDS)
        lags.observe(max(0.0, loop.time() - due))
