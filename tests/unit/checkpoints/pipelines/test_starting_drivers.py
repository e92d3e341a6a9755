"""Drivers that are expected at a checkpoint."""

import asyncio

from riverlog.checkpoints.limits import CHECKPOINT_ARRIVAL_SECONDS_MAX
from riverlog.checkpoints.pipelines.starting_drivers import StartingDrivers
from tests.support.virtual_time import run


def test_nobody_waits_where_nobody_is_expected() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        arrivals, began = StartingDrivers(), loop.time()
        arrivals.came("/p")
        arrivals.expect("/q")
        await arrivals.give_way("/p")
        assert loop.time() == began

    run(scenario())


def test_whoever_gives_way_goes_on_when_it_has_come_or_its_time_is_up() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        arrivals, began = StartingDrivers(), loop.time()
        arrivals.expect("/p")
        loop.call_later(2, arrivals.came, "/p")
        await asyncio.gather(arrivals.give_way("/p"), arrivals.give_way("/p"))
        assert loop.time() == began + 2
        arrivals.expect("/p")
        loop.call_later(3, arrivals.expect, "/p")  # another one
        await arrivals.give_way("/p")
        assert loop.time() == began + 2 + CHECKPOINT_ARRIVAL_SECONDS_MAX
        await arrivals.give_way("/p")
        assert loop.time() == began + 2 + CHECKPOINT_ARRIVAL_SECONDS_MAX

    run(scenario())


def test_drivers_that_fail_at_each_start_are_waited_for_less_and_less() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        arrivals, waited = StartingDrivers(), []
        for _ in range(24 * 60 * 6):  # a start each ten seconds, for a day
            arrivals.expect("/p")
            began = loop.time()
            await arrivals.give_way("/p")
            waited.append(loop.time() - began)
            await asyncio.sleep(10)
        held = [seconds for seconds in waited if seconds]
        assert set(held) == {CHECKPOINT_ARRIVAL_SECONDS_MAX}
        assert len(held) <= 30
        arrivals.came("/p")
        arrivals.expect("/p")
        loop.call_later(2, arrivals.came, "/p")
        began = loop.time()
        await arrivals.give_way("/p")
        assert loop.time() - began == 2, "one that comes is waited for again"

    run(scenario())


def test_a_start_that_held_up_nobody_was_not_in_vain() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        arrivals = StartingDrivers()
        arrivals.expect("/p")
        await asyncio.sleep(2 * CHECKPOINT_ARRIVAL_SECONDS_MAX)
        began = loop.time()
        await arrivals.give_way("/p")
        assert loop.time() == began
        arrivals.expect("/p")
        await arrivals.give_way("/p")
        assert loop.time() == began + CHECKPOINT_ARRIVAL_SECONDS_MAX

    run(scenario())
