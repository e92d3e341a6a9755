"""Drivers that are expected at a checkpoint."""

import asyncio

from riverlog.checkpoints.arrivals import Arrivals
from riverlog.model.limits import CHECKPOINT_ARRIVAL_SECONDS_MAX
from tests.support.virtual_time import run


def test_nobody_waits_where_nobody_is_expected() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        arrivals, began = Arrivals(), loop.time()
        arrivals.came("/p")
        arrivals.expect("/q")
        await arrivals.give_way("/p")
        assert loop.time() == began

    run(scenario())


def test_whoever_gives_way_goes_on_when_it_has_come_or_its_time_is_up() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        arrivals, began = Arrivals(), loop.time()
        arrivals.expect("/p")
        loop.call_later(2, arrivals.came, "/p")
        await asyncio.gather(arrivals.give_way("/p"), arrivals.give_way("/p"))
        assert loop.time() == began + 2
        arrivals.expect("/p")
        loop.call_later(3, arrivals.expect, "/p")  # another one
        await arrivals.give_way("/p")
        assert loop.time() == began + 2 + 3 + CHECKPOINT_ARRIVAL_SECONDS_MAX
        await arrivals.give_way("/p")
        assert loop.time() == began + 2 + 3 + CHECKPOINT_ARRIVAL_SECONDS_MAX

    run(scenario())
