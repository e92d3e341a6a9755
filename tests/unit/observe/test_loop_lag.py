"""How late the event loop is."""

import asyncio

from riverlog.observe.loop_lag import measure_loop_lag
from riverlog.observe.stats import SECONDS_BOUNDS, Histogram
from tests.support.virtual_time import VirtualTimeLoop


async def test_a_loop_that_is_held_is_seen() -> None:
    lags, loop = Histogram(), asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    measuring = loop.create_task(measure_loop_lag(lags))
    await asyncio.sleep(10)
    assert sum(lags.counts) >= 30
    assert lags.counts[0] == sum(lags.counts), "nobody holds it"
    await asyncio.sleep(0.1)
    loop.now += 2.0  # as a function does that computes for so long
    await asyncio.sleep(1)
    assert sum(lags.counts[len(SECONDS_BOUNDS) - 4 :]) == 1
    measuring.cancel()
