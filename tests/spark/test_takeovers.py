"""Two drivers on one checkpoint: one is refused, whoever sleeps and whoever wakes up, and every batch counts once."""

from dataclasses import replace

import pytest

from tests.spark.drivers import TOO_SLOW, Driver
from tests.spark.numbers import SECONDS_MAX
from tests.spark.stage import Crew, Stage
from tests.spark.strikes import STEPS, Step, Trap
from tests.support.relay import HttpRelay, Moment, Passing
from tests.support.relayed import RelayedNode
from tests.support.waiting import until

ANNOUNCED = Step("ANNOUNCE", Moment.HEARD, "/pipelines/{}?", passes=True)
RENAMES = STEPS["before commits/N"]._replace(passes=True)
REFUSED = ("replaced", "CONCURRENT_STREAM_LOG_UPDATE", "another driver has taken over")
"""What the query says that is refused: the store's word, Spark's own, or the sink's."""


@pytest.mark.timeout(900)
def test_a_driver_that_wakes_up_between_the_announcement_of_another_and_its_rename_is_refused(
    relayed: RelayedNode, crew: Crew
) -> None:
    crew.prepare(2)
    stage = Stage(relayed, ["tallies"])
    first, second = crew.take(), crew.take()
    with HttpRelay() as way:
        way.lead_to(relayed.node.addresses["checkpoints"])
        again = [
            replace(query, checkpoint=query.checkpoint.replace(relayed.store.address, way.address))
            for query in stage.queries
        ]
        asleep = Trap(ANNOUNCED, "tallies", lambda _: first.freeze(), spared=1)
        relayed.watch(asleep)
        stage.numbers.write()
        stage.run(first)
        second.until_ready()
        asleep.until_struck(first.check, first.tail)

        problems: list[str | None] = []

        def wake(_: Passing) -> None:
            first.thaw()
            problems.append(first.until_ended("tallies"))

        awake = way.watcher = Trap(RENAMES, "tallies", wake)
        second.run(*again)
        awake.until_struck(second.check, second.tail)
        assert is_refused(problems[0]), problems
        stage.until_done(second)
        stage.check_end(second)
        both_awake(stage, first, second)
    crew.give_back(first)


def both_awake(stage: Stage, first: Driver, second: Driver) -> None:
    """Let the first one start again beside the second: at least one is refused, and the log is right."""
    stage.numbers.write()
    stage.run(first)

    def one_has_ended() -> bool:
        if stage.numbers.is_done("tallies"):
            stage.numbers.write(1)
        return bool(first.ends("tallies") or second.ends("tallies"))

    until(one_has_ended, lambda: f"{first.tail()}\n{second.tail()}", seconds_max=SECONDS_MAX)
    assert all(map(is_refused, first.ends("tallies") + second.ends("tallies")))
    second.kill()
    if first.ends("tallies"):
        first.until_ended("tallies")
        first.run(*stage.queries)
    first.may_end += REFUSED  # by what the other one had begun
    stage.until_done(first)
    stage.check_end(first)
    first.may_end = [TOO_SLOW]


def is_refused(problem: str | None) -> bool:
    return any(word in (problem or "") for word in REFUSED)
