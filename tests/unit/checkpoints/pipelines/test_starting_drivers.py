"""Drivers that are expected at a checkpoint."""

import asyncio

from riverlog.checkpoints.limits import CHECKPOINT_ARRIVAL_SECONDS_MAX
from riverlog.checkpoints.pipelines.starting_drivers import StartingDrivers


async def test_nobody_waits_where_nobody_is_expected() -> None:
    loop = asyncio.get_running_loop()
    starting, began = StartingDrivers(), loop.time()
    starting.arrived("/p")
    starting.expect("/q")
    await starting.wait_for("/p")
    assert loop.time() == began


async def test_whoever_gives_way_goes_on_when_it_has_come_or_its_time_is_up() -> None:
    loop = asyncio.get_running_loop()
    starting, began = StartingDrivers(), loop.time()
    starting.expect("/p")
    loop.call_later(2, starting.arrived, "/p")
    await asyncio.gather(starting.wait_for("/p"), starting.wait_for("/p"))
    assert loop.time() == began + 2
    starting.expect("/p")
    loop.call_later(3, starting.expect, "/p")  # another one
    await starting.wait_for("/p")
    assert loop.time() == began + 2 + CHECKPOINT_ARRIVAL_SECONDS_MAX
    await starting.wait_for("/p")
    assert loop.time() == began + 2 + CHECKPOINT_ARRIVAL_SECONDS_MAX


async def test_drivers_that_fail_at_each_start_are_waited_for_less_and_less() -> None:
    loop = asyncio.get_running_loop()
    starting, waited = StartingDrivers(), []
    for _ in range(24 * 60 * 6):  # a start each ten seconds, for a day
        starting.expect("/p")
        began = loop.time()
        await starting.wait_for("/p")
        waited.append(loop.time() - began)
        await asyncio.sleep(10)
    held = [seconds for seconds in waited if seconds]
    assert set(held) == {CHECKPOINT_ARRIVAL_SECONDS_MAX}
    assert len(held) <= 30
    starting.arrived("/p")
    starting.expect("/p")
    loop.call_later(2, starting.arrived, "/p")
    began = loop.time()
    await starting.wait_for("/p")
    assert loop.time() - began == 2, "one that comes is waited for again"


async def test_a_start_that_held_up_nobody_was_not_in_vain() -> None:
    loop = asyncio.get_running_loop()
    starting = StartingDrivers()
    starting.expect("/p")
    await asyncio.sleep(2 * CHECKPOINT_ARRIVAL_SECONDS_MAX)
    began = loop.time()
    await starting.wait_for("/p")
    assert loop.time() == began
    starting.expect("/p")
    await starting.wait_for("/p")
    assert loop.time() == began + CHECKPOINT_ARRIVAL_SECONDS_MAX
