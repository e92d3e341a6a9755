"""The process of each example is killed between the steps of a batch, and started again: what it gives is there once.

In the ordinary tests once for each example, at one step after another. `make chaos` kills each query of each example
five times, at five steps (SPARK_KILLS=5), and prints how often it did. Every driver loses its disk.
"""

import os
import sys
import time
from collections import Counter
from functools import partial
from typing import Final

import pytest

from tests.spark.drivers import Driver
from tests.spark.play import Play
from tests.spark.plays import PLAYS
from tests.spark.stage import Crew
from tests.spark.strikes import STEPS, Trap
from tests.support.relay import Passing, let_pass
from tests.support.relayed import RelayedNode
from tests.support.waiting import until

KILLS: Final = int(os.environ.get("SPARK_KILLS", "0"))
"""How often for each query; 0 is the small form: each example once."""
MOMENTS: Final = (
    "after the tasks' flush",
    "between its record and the markers",
    "before commits/N",
    "after commits/N",
    "after join",
)
SECONDS_MAX: Final = 300.0
LOOK_SECONDS: Final = 1.0
"""Between two looks at all that is there, which cost those who are looked at."""


@pytest.mark.timeout(600 + 3 * KILLS * 120)
@pytest.mark.parametrize("kind", PLAYS, ids=lambda kind: kind.__name__.lower())
def test_an_example_is_killed_and_goes_on(relayed: RelayedNode, crew: Crew, kind: type[Play]) -> None:
    play = kind(relayed)
    turn = PLAYS.index(kind)
    strikes = [(play.queries[turn % len(play.queries)], MOMENTS[turn % len(MOMENTS)])]
    if KILLS:
        strikes = [(query, MOMENTS[kill % len(MOMENTS)]) for kill in range(KILLS) for query in play.queries]
    counts: Counter[str] = Counter()
    for query, moment in strikes:
        driver = crew.take()
        trap = Trap(STEPS[moment], query, partial(strike, driver))
        relayed.watch(trap)
        play.write()
        driver.until_ready().run(play.told)
        crew.prepare(1)
        trap.until_struck(driver.check, driver.tail)
        driver.lose_disk()
        relayed.watch(let_pass)
        play.check()
        counts[f"{query}, {moment}"] += 1
    driver = crew.take()
    driver.until_ready().run(play.told)

    looked_at = 0.0

    def done() -> bool:
        nonlocal looked_at
        driver.check()
        if time.monotonic() < looked_at + LOOK_SECONDS:
            return False
        looked_at = time.monotonic()
        return play.is_done()

    for _ in range(2):  # behind the watermark of the first, rows of the second are late
        play.write()
        until(done, lambda: f"{play.state()}\n{driver.tail()}", seconds_max=SECONDS_MAX)
    crew.give_back(driver)
    play.foreign = True
    assert play.found() == play.expected()
    assert all(play.found().values()), "a topic got nothing"
    rows = {topic: found.total() for topic, found in play.found().items()}
    for label, count in counts.items():
        print(f"\n  killed {count} times: {label}", end="", file=sys.stderr)
    print(f"\n  {counts.total()} kills of {kind.__name__}: {rows}, as the oracle says, once", file=sys.stderr)


def strike(driver: Driver, _: Passing) -> None:
    """Kill a driver, as a trap does it."""
    driver.kill()
