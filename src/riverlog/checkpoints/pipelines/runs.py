"""The runs of one query that were reported about, in the order of their first reports. Pure.

Drivers' clocks differ, so none of them orders anything: the times that drivers report are for people. The run that is
shown is the last that runs, or the last one. Each has the secret of its first report: a report of the same run without
it is somebody else's.
"""

import hmac
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.limits import PROGRESS_RUNS_MAX
from riverlog.checkpoints.pipelines.progress import RunProgress, RunState, read_progress
from riverlog.checkpoints.records import ProgressNoted, Unreadable


@dataclass(frozen=True, slots=True)
class Runs:
    """What is known of a query's runs."""

    reports: tuple[RunProgress, ...] = ()
    """The latest report of each, in the order of the first ones."""
    late_rows_before: int = 0
    """Rows that runs have dropped as late that are not listed any more."""
    error: str = ""
    """Why the last run that failed did, unless another one has succeeded since."""
    error_ms: int | None = None

    @property
    def heard_ms(self) -> int:
        """When the last report came."""
        return max((each.heard_ms for each in self.reports), default=0)

    def after(self, report: RunProgress) -> "Runs":
        """Return what is known after a report; RequestRefused where it is not the run's own."""
        error, error_ms = (report.error, report.error_ms) if report.error else (self.error, self.error_ms)
        if _succeeds(report):
            error, error_ms = "", None
        for index, known in enumerate(self.reports):
            if known.run == report.run:
                if not hmac.compare_digest(known.proof, report.proof):
                    raise RequestRefused.failed(
                        f"this report about run {report.run} is not by the driver that began it"
                    )
                if known.state is not RunState.RUNNING:
                    return self
                latest = replace(report, first_heard_ms=known.first_heard_ms)
                reports = (*self.reports[:index], latest, *self.reports[index + 1 :])
                return replace(self, reports=reports, error=error, error_ms=error_ms)
        begun = replace(report, first_heard_ms=report.heard_ms)
        return replace(self._with_room(report.heard_ms), error=error, error_ms=error_ms)._with(begun)

    def shown(self, now_ms: int) -> RunProgress:
        """Return the report that stands for the query, with what is known of the others in it."""
        alive = self.alive(now_ms)
        last = (alive or self.reports)[-1]
        others = sum(each.late_rows for each in self.reports if each is not last)
        late_rows_before = self.late_rows_before + others
        return replace(last, late_rows_before=late_rows_before, error=self.error, error_ms=self.error_ms)

    def alive(self, now_ms: int) -> tuple[RunProgress, ...]:
        """Return the runs that report that they run."""
        return tuple(each for each in self.reports if each.state_at(now_ms) is RunState.RUNNING)

    def in_doubt(self, now_ms: int) -> tuple[RunProgress, ...]:
        """Return the runs that have fallen silent, unless another began behind that."""
        silent = (each for each in self.reports if each.state_at(now_ms) is RunState.UNKNOWN)
        newest_ms = max((each.first_heard_ms for each in self.reports), default=0)
        return tuple(each for each in silent if each.heard_ms >= newest_ms)

    def note(self, path: str, now_ms: int) -> ProgressNoted:
        """Return this as a fact."""
        shown = self.shown(now_ms)
        others = [asdict(each) for each in self.reports if each.run != shown.run and each.state is RunState.RUNNING]
        return ProgressNoted(path, {**asdict(shown), "others": others})

    def states(self, now_ms: int) -> frozenset[tuple[str, RunState]]:
        """Return how each run is that a fact is about."""
        shown = self.shown(now_ms).run
        reports = (each for each in self.reports if each.run == shown or each.state is RunState.RUNNING)
        return frozenset((each.run, each.state) for each in reports)

    def _with(self, begun: RunProgress) -> "Runs":
        return replace(self, reports=(*self.reports, begun))

    def _with_room(self, now_ms: int) -> "Runs":
        """Forget a run where there are too many: one that is over, or else the one silent for longest."""
        if len(self.reports) < PROGRESS_RUNS_MAX:
            return self
        counted = {*self.alive(now_ms), *self.in_doubt(now_ms)}
        gone = min(self.reports, key=lambda each: (each in counted, each.heard_ms))
        reports = tuple(each for each in self.reports if each is not gone)
        return replace(self, reports=reports, late_rows_before=self.late_rows_before + gone.late_rows)


def _succeeds(report: RunProgress) -> bool:
    """Return whether a run has done a batch, or what there was to do."""
    return not report.error and (report.batch is not None or report.state is RunState.STOPPED)


def read_runs(facts: Mapping[str, Any]) -> Runs:
    """Read what `note` gave; Unreadable where it is nothing of the kind."""
    others = facts.get("others", [])
    if not isinstance(others, list) or not all(isinstance(each, dict) for each in others):
        raise Unreadable("a report: others are no reports")
    shown = read_progress(dict(facts))
    reports = sorted((*map(read_progress, others), shown), key=lambda each: each.first_heard_ms)
    before = shown.late_rows_before - sum(each.late_rows for each in reports if each is not shown)
    plain = tuple(replace(each, late_rows_before=0, error="", error_ms=None) for each in reports)
    return Runs(plain[-PROGRESS_RUNS_MAX:], max(before, 0), shown.error, shown.error_ms)
