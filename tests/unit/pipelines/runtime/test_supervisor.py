"""Pipelines are started, started again after failures, stopped as one, and given up."""

from random import Random
from typing import Any

from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.pipelines.runtime.supervisor import Supervisor
from tests.unit.pipelines.runtime.test_progress_line import ACCOUNT


class Query:
    """A query of Spark whose fate is decided by the test."""

    def __init__(self, name: str) -> None:
        self.name: str | None = name
        self.isActive = True
        self.lastProgress: Any = None
        self.failure: BaseException | None = None

    def exception(self) -> BaseException | None:
        return self.failure

    def fail(self, message: str) -> None:
        self.isActive, self.failure = False, RuntimeError(message)


class Pipeline:
    """A pipeline of two outputs."""

    def __init__(self, name: str = "revenue") -> None:
        self.name = name
        self.queries: list[Query] = []
        self.starts: list[str | None] = []
        self.stops: list[bool] = []
        self.refuses = 0

    def start(self, *, trigger: str | None = None) -> None:
        self.starts.append(trigger)
        if self.refuses:
            self.refuses -= 1
            raise OSError("the store is away")
        self.queries = [Query(self.name), Query(f"{self.name}-late")]

    def stop(self, *, finish: bool = True) -> None:
        self.stops.append(finish)
        for query in self.queries:
            query.isActive = False


class Scene:
    """A supervisor with a clock that the test moves."""

    def __init__(self, *pipelines: Pipeline, restarts_max: int = 3, trigger: str | None = None) -> None:
        self.now = 100.0
        self.said: list[str] = []
        self.supervisor = Supervisor(
            pipelines,
            report=self.said.append,
            trigger=trigger,
            restarts_max=restarts_max,
            random=Random(1),
            clock=lambda: self.now,
        )
        assert self.supervisor.check()

    def later(self, seconds: float) -> bool:
        self.now += seconds
        return self.supervisor.check()


def test_what_fails_is_stopped_as_a_whole_and_started_again() -> None:
    pipeline, other = Pipeline(), Pipeline("other")
    scene = Scene(pipeline, other)
    assert pipeline.starts == [None]
    pipeline.queries[1].fail("no disk\n=== Streaming Query ===\nplan")
    assert scene.later(0.1)
    assert (pipeline.stops, other.stops) == ([False], [])
    assert scene.said == ["revenue failed: no disk; it starts again in 1 s, restart 1 of 3"]
    assert scene.later(0.1)
    assert len(pipeline.starts) == 1
    assert scene.later(1.0)
    assert len(pipeline.starts) == 2
    assert len(other.starts) == 1


def test_after_too_many_failures_in_a_row_it_is_given_up() -> None:
    pipeline = Pipeline()
    scene = Scene(pipeline, restarts_max=2)
    for _ in range(2):
        pipeline.queries[0].fail("again")
        assert scene.later(0.1)
        assert scene.later(60)
    pipeline.queries[0].fail("again")
    assert not scene.later(0.1)
    assert scene.said[-1] == "revenue failed and is not started again: again (revenue has failed 3 times in a row)"
    assert scene.supervisor.pipelines[0].failure == "again"
    assert len(pipeline.starts) == 3


def test_a_batch_of_its_own_begins_the_count_anew() -> None:
    pipeline = Pipeline()
    scene = Scene(pipeline, restarts_max=1)
    for batch in range(5):
        pipeline.queries[1].lastProgress = {**ACCOUNT, "batchId": batch}
        pipeline.queries[1].fail("now and then")
        assert scene.later(0.1)
        assert scene.later(60)
    assert len(pipeline.starts) == 6


def test_a_query_that_fails_at_one_place_is_not_kept_going_by_its_neighbour() -> None:
    pipeline = Pipeline()
    scene = Scene(pipeline, restarts_max=2)
    for batch in range(2):
        pipeline.queries[0].lastProgress = {**ACCOUNT, "batchId": batch}
        pipeline.queries[1].fail("a poisoned row")
        assert scene.later(0.1)
        assert scene.later(60)
    pipeline.queries[0].lastProgress = {**ACCOUNT, "batchId": 2}
    pipeline.queries[1].fail("a poisoned row")
    assert not scene.later(0.1)
    assert scene.said[-1] == (
        "revenue failed and is not started again: a poisoned row (revenue-late has failed 3 times in a row)"
    )


def test_a_batch_that_was_known_before_is_no_progress() -> None:
    pipeline = Pipeline()
    scene = Scene(pipeline, restarts_max=1)
    pipeline.queries[0].lastProgress = ACCOUNT
    pipeline.queries[0].fail("again")
    assert scene.later(0.1)
    assert scene.later(60)
    pipeline.queries[0].lastProgress = ACCOUNT
    pipeline.queries[0].fail("again")
    assert not scene.later(0.1)


def test_a_start_that_fails_is_a_failure() -> None:
    pipeline = Pipeline()
    pipeline.refuses = 1
    scene = Scene(pipeline)
    assert "the store is away" in scene.said[0]
    assert scene.later(60)
    assert len(pipeline.queries) == 2


def test_who_was_replaced_does_not_come_back() -> None:
    pipeline = Pipeline()
    scene = Scene(pipeline)
    pipeline.queries[0].isActive, pipeline.queries[0].failure = False, RequestRefused.replaced("another run goes on")
    assert not scene.later(0.1)
    assert len(pipeline.starts) == 1


def test_who_only_says_so_comes_back() -> None:
    pipeline = Pipeline()
    scene = Scene(pipeline)
    pipeline.queries[0].fail("the price of shop 7 was replaced")
    assert scene.later(0.1)
    assert scene.later(60)
    assert len(pipeline.starts) == 2


def test_when_somebody_stops_one_query_all_stop() -> None:
    pipeline = Pipeline()
    scene = Scene(pipeline)
    pipeline.queries[0].isActive = False
    assert not scene.later(0.1)
    assert pipeline.stops == [True]
    assert scene.said == ["revenue has stopped"]


def test_what_ends_by_itself_ends_one_after_another() -> None:
    pipeline = Pipeline()
    scene = Scene(pipeline, trigger="available-now")
    assert pipeline.starts == ["available-now"]
    pipeline.queries[0].isActive = False
    assert scene.later(0.1)
    pipeline.queries[1].isActive = False
    assert not scene.later(0.1)
    assert pipeline.stops == []
    assert scene.said == ["revenue has read what there was"]


def test_all_are_stopped_and_those_that_wait_do_not_start() -> None:
    pipeline, other = Pipeline(), Pipeline("other")
    scene = Scene(pipeline, other)
    other.queries[0].fail("no disk")
    assert scene.later(0.1)
    scene.supervisor.stop(finish=True)
    assert (pipeline.stops, other.stops) == ([True], [False])
    assert not scene.later(60)
    assert len(other.starts) == 1


def test_lines_tell_of_queries_that_have_done_something() -> None:
    pipeline = Pipeline()
    scene = Scene(pipeline)
    assert scene.supervisor.lines() == []
    pipeline.queries[0].lastProgress = ACCOUNT
    (line,) = scene.supervisor.lines()
    assert line.startswith("revenue: batch 12, ")
