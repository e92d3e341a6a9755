"""A query goes on from the log, whatever else is lost: the node for a while, an executor, its checkpoint on purpose."""

import os
import signal
from collections import Counter

import pytest

from tests.spark.drivers import Driver
from tests.spark.numbers import SECONDS_MAX
from tests.spark.stage import Crew, Stage
from tests.spark.strikes import JOIN, STEPS, WRITTEN, Step, Trap
from tests.spark.test_kills import KILLS, tell
from tests.support.relay import Moment, Passing
from tests.support.relayed import RelayedNode
from tests.support.waiting import until
from tests.support.webhdfs import WebHdfs

MOVED = Step("RENAME", Moment.ASKED, "")
UNDER_WAY = {
    "a task joins": Step("JoinTransaction", Moment.FORWARDED, JOIN),
    "a task writes": WRITTEN._replace(moment=Moment.FORWARDED),
    "the sink announces": STEPS["after the tasks' flush"]._replace(moment=Moment.FORWARDED),
    "offsets/N is written, and not renamed": MOVED._replace(about="destination=/pipelines/{}/offsets/"),
    "state is written, and not renamed": MOVED._replace(about="destination=/pipelines/{}/state/"),
    "commits/N is written, and not renamed": STEPS["before commits/N"],
    "commits/N is being renamed": STEPS["before commits/N"]._replace(moment=Moment.FORWARDED),
}
"""How far a batch is when the node is killed."""


@pytest.mark.timeout(900 + 300 * KILLS)
def test_a_query_goes_on_when_the_node_under_it_is_killed_and_started_again(relayed: RelayedNode, crew: Crew) -> None:
    stage = Stage(relayed, ["tallies"])
    driver = crew.take()
    stage.numbers.write(1)
    stage.run(driver)
    stage.until_done(driver)
    counts: Counter[str] = Counter()

    def strike(_: Passing) -> None:
        relayed.node.kill()
        relayed.node.start()

    for label in [*UNDER_WAY] * (KILLS or 1):
        trap = Trap(UNDER_WAY[label], "tallies", strike)
        relayed.watch(trap)
        stage.numbers.write(1)
        trap.until_struck(driver.check, driver.tail)
        stage.until_done(driver)  # the query has not ended
        stage.check()
        counts[f"the node when {label}"] += 1
    stage.check_end(driver)
    crew.give_back(driver)
    tell(counts)


@pytest.mark.timeout(900)
def test_a_checkpoint_is_deleted_and_its_query_begins_from_nothing_and_skips_nothing(
    relayed: RelayedNode, crew: Crew
) -> None:
    stage = Stage(relayed, ["copies"])
    driver = crew.take()
    stage.numbers.write()
    stage.run(driver)
    stage.until_done(driver)
    driver.stop("copies")
    with WebHdfs(relayed.checkpoints) as store:
        assert store.ask("DELETE", "/pipelines/copies", "DELETE", recursive="true").facts == {"boolean": True}
    stage.numbers.write(1)
    before = stage.numbers.copies()
    driver.run(*stage.queries)

    def done() -> bool:
        driver.check()
        return sum(map(len, stage.numbers.copies())) >= sum(map(len, before)) + stage.numbers.count

    until(done, driver.tail, seconds_max=SECONDS_MAX)
    expected = [old + written for old, written in zip(before, stage.numbers.written, strict=True)]
    assert stage.numbers.copies() == expected
    crew.give_back(driver)


@pytest.mark.timeout(900 + 200 * KILLS)
def test_two_executors_with_a_disk_each_share_nothing_but_the_log(
    relayed: RelayedNode, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stage = Stage(relayed, ["tallies"])
    stage.numbers.write()
    folder = tmp_path_factory.mktemp("cluster")  # sockets lie there, whose paths must be short
    with Driver(folder / "d", master="local-cluster[2,1,1024]") as driver:
        stage.run(driver)
        stage.until_done(driver)
        assert len(driver.executors()) == 2
        assert len(list(driver.folder.glob("local/*/executor-*"))) == 2
        for _ in range(KILLS):
            os.kill(driver.executors()[0], signal.SIGKILL)
            stage.numbers.write()
            stage.until_done(driver)
            stage.check()
            until(lambda: len(driver.executors()) == 2, driver.tail, seconds_max=SECONDS_MAX)
        stage.check_end(driver)
    tell(Counter({"one of two executors": KILLS}))
