"""Keeps pipelines running: starts them, starts again what failed, and reports their progress.

A pipeline of several outputs lives and ends as one: when a query of it fails the others are stopped, and all start
again; when somebody stops one, all stop. Failures are counted for each query, and only its own batches begin its count
anew: one that fails at the same place again and again is not kept going by its neighbours. A pipeline is given up after
too many failures of a query in a row, and at once when another run has taken its place: two would only take it from
each other.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from riverlog.pipelines.runtime.backoff import Backoffs
from riverlog.pipelines.runtime.failures import is_taken_over
from riverlog.pipelines.runtime.progress_line import line_of
from riverlog.spark.error_words import reason

if TYPE_CHECKING:
    from collections.abc import Sequence


class Query(Protocol):
    """A query of Spark, as far as it is looked at."""

    @property
    def name(self) -> str | None: ...
    @property
    def isActive(self) -> bool: ...  # noqa: N802 - Spark's name
    @property
    def lastProgress(self) -> Any: ...  # noqa: N802 - Spark's name
    def exception(self) -> BaseException | None: ...


class SupervisedPipeline(Protocol):
    """A pipeline, as far as it is kept running."""

    name: str

    @property
    def queries(self) -> "Sequence[Query]": ...
    def start(self, *, trigger: str | None = None) -> object: ...
    def stop(self, *, finish: bool = True) -> None: ...


@dataclass
class PipelineStatus:
    """One pipeline, and its state."""

    pipeline: SupervisedPipeline
    backoffs: Backoffs
    start_at: float | None = 0.0
    """When it is to be started; None while it runs, and at the end."""
    is_over: bool = False
    failure: str | None = None
    """Why it was given up."""


class Supervisor:
    """Keeps some pipelines running."""

    def __init__(
        self,
        pipelines: Iterable[SupervisedPipeline],
        *,
        report: Callable[[str], None],
        trigger: str | None = None,
        restarts_max: int,
        random: Random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.pipelines = [PipelineStatus(pipeline, Backoffs(restarts_max, random)) for pipeline in pipelines]
        self._report = report
        self._trigger = trigger
        self._clock = clock
        self._lines: dict[str, str] = {}
        self._ends_by_itself = trigger == "available-now"

    def check(self) -> bool:
        """Do what is due, and return whether a pipeline is left."""
        for each in self.pipelines:
            if each.is_over:
                continue
            if each.start_at is None:
                self._check(each)
            elif each.start_at <= self._clock():
                self._start(each)
        return not all(each.is_over for each in self.pipelines)

    def stop(self, *, finish: bool) -> None:
        """Stop all."""
        for each in self.pipelines:
            if not each.is_over and each.start_at is None:
                each.pipeline.stop(finish=finish)
            each.is_over, each.start_at = True, None

    def lines(self) -> list[str]:
        """Return a line on each query that has done a batch; while nothing comes in, the last one."""
        for query in [query for each in self.pipelines for query in each.pipeline.queries]:
            name, progress = _name(query), query.lastProgress
            if progress is not None and (progress["numInputRows"] or name not in self._lines):
                self._lines[name] = line_of(name, progress)
        return list(self._lines.values())

    def _start(self, each: PipelineStatus) -> None:
        each.start_at = None
        try:
            each.pipeline.start(trigger=self._trigger)
        except Exception as problem:
            self._failed(each, problem)

    def _check(self, each: PipelineStatus) -> None:
        queries = list(each.pipeline.queries)
        for query in queries:
            if (progress := query.lastProgress) is not None:
                each.backoffs.completed(_name(query), progress["batchId"])
        for query in queries:
            if not query.isActive and (failure := query.exception()) is not None:
                self._failed(each, failure, _name(query))
                return
        if all(not query.isActive for query in queries):
            self._over(each)
        elif not self._ends_by_itself and not all(query.isActive for query in queries):
            each.pipeline.stop(finish=True)
            self._over(each)

    def _over(self, each: PipelineStatus) -> None:
        each.is_over = True
        self._report(f"{each.pipeline.name} has {'read what there was' if self._ends_by_itself else 'stopped'}")

    def _failed(self, each: PipelineStatus, problem: BaseException, query: str = "") -> None:
        """Stop what is left of a pipeline, and start it again in a while, or never."""
        each.pipeline.stop(finish=False)
        words = reason(str(problem)) or type(problem).__name__
        pause = None if is_taken_over(problem) else each.backoffs.of(query).failed()
        if pause is None:
            each.is_over, each.failure = True, words
            failures = each.backoffs.of(query).failures
            which = f" ({query} has failed {failures:,} times in a row)" if query and failures > 1 else ""
            self._report(f"{each.pipeline.name} failed and is not started again: {words}{which}")
            return
        each.start_at = self._clock() + pause
        backoff = each.backoffs.of(query)
        again = f"it starts again in {pause:.0f} s, restart {backoff.failures} of {backoff.restarts_max}"
        self._report(f"{each.pipeline.name} failed: {words}; {again}")


def _name(query: Query) -> str:
    return query.name or "query"
