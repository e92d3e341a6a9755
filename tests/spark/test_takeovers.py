"""Two drivers on one checkpoint: one is refused, whoever sleeps and whoever wakes up, and every batch counts once."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest

from tests.spark.drivers import Driver, Query
from tests.spark.numbers import SECONDS_MAX
from tests.spark.stage import Crew, Stage
from tests.spark.strikes import STEPS, Step, Trap
from tests.spark.test_kills import KILLS, tell
from tests.support.relay import HttpRelay, Moment, Passing
from tests.support.relayed import RelayedNode
from tests.support.waiting import until

ANNOUNCED = Step("ANNOUNCE", Moment.HEARD, "/pipelines/{}?", passes=True)
RENAMES = STEPS["before commits/N"]._replace(passes=True)
REFUSED = ("replaced", "CONCURRENT_STREAM_LOG_UPDATE", "Multiple streaming queries", "another driver")
"""What the query says that is refused: the store's word, one of Spark's own, or the sink's."""
NAMES = ["tallies", "copies"] if KILLS else ["tallies"]
"""With state, and without."""


class Side(NamedTuple):
    """A driver, its own way to the checkpoint, and the query by this way."""

    driver: Driver
    way: HttpRelay
    queries: list[Query]

    def start(self) -> None:
        self.driver.until_ready().run(*self.queries)


@pytest.fixture
def other_way(relayed: RelayedNode) -> Iterator[HttpRelay]:
    """Yield a second way to the checkpoint store."""
    with HttpRelay() as way:
        way.lead_to(relayed.node.addresses["checkpoints"])
        yield way


def sides_of(stage: Stage, crew: Crew, other_way: HttpRelay) -> tuple[Side, Side]:
    crew.prepare(2)
    way = stage.relayed.store
    again = [
        replace(query, checkpoint=query.checkpoint.replace(way.address, other_way.address)) for query in stage.queries
    ]
    return Side(crew.take(), way, stage.queries), Side(crew.take(), other_way, again)


@pytest.mark.timeout(900 + 200 * KILLS)
@pytest.mark.parametrize("name", NAMES)
def test_a_driver_that_wakes_up_between_the_announcement_of_another_and_its_rename_is_refused(
    relayed: RelayedNode, crew: Crew, other_way: HttpRelay, name: str
) -> None:
    stage = Stage(relayed, [name])
    old, new = sides_of(stage, crew, other_way)
    new.driver.until_ready()
    old.start()
    for _ in range(KILLS or 1):
        wake_up(stage, name, old, new)
        old, new = new, old
    stage.check_end(old.driver)
    for side in (old, new):
        crew.give_back(side.driver)
    tell(Counter({f"woken up between announcement and RENAME ({name})": KILLS or 1}), "refused")


def wake_up(stage: Stage, name: str, old: Side, new: Side) -> None:
    """Make the old driver sleep with its batch announced, and wake up when the new one is there with the same."""
    asleep = old.way.watcher = Trap(ANNOUNCED, name, lambda _: old.driver.freeze(), spared=1)
    stage.numbers.write()
    asleep.until_struck(old.driver.check, old.driver.tail)
    problems: list[str | None] = []

    def wake(_: Passing) -> None:
        old.driver.thaw()
        problems.append(old.driver.until_ended(name))

    awake = new.way.watcher = Trap(RENAMES, name, wake)
    new.start()
    awake.until_struck(new.driver.check, new.driver.tail)
    assert is_refused(problems[0]), problems
    stage.until_done(new.driver)
    stage.check()


@pytest.mark.timeout(900 + 200 * KILLS)
@pytest.mark.parametrize("name", NAMES)
def test_of_two_drivers_that_are_awake_one_is_refused_and_the_other_goes_on(
    relayed: RelayedNode, crew: Crew, other_way: HttpRelay, name: str
) -> None:
    stage = Stage(relayed, [name])
    sides = running, starting = sides_of(stage, crew, other_way)
    starting.driver.until_ready()
    stage.numbers.write(1)
    running.start()
    stage.until_done(running.driver)
    counts: Counter[str] = Counter()
    for _ in range(KILLS or 1):
        starting.start()
        until_one_ends(stage, name, sides)
        refused, staying = (running, starting) if running.driver.ends(name) else (starting, running)
        counts[f"the older one ({name})" if refused is running else f"the newer one ({name})"] += 1
        problem = refused.driver.until_ended(name)
        assert is_refused(problem), problem
        stage.numbers.write()
        stage.until_done(staying.driver)  # and has not ended
        stage.check()
        running, starting = staying, refused
    stage.check_end(running.driver)
    for side in sides:
        crew.give_back(side.driver)
    tell(counts, "refused")


def until_one_ends(stage: Stage, name: str, sides: tuple[Side, Side]) -> None:
    """Write so that there is always something to do until a driver has ended."""

    def one_has_ended() -> bool:
        if stage.numbers.is_done(name):
            stage.numbers.write(1)
        return any(side.driver.ends(name) for side in sides)

    until(one_has_ended, lambda: "\n".join(side.driver.tail() for side in sides), seconds_max=SECONDS_MAX)


def is_refused(problem: str | None) -> bool:
    return any(word in (problem or "") for word in REFUSED)
