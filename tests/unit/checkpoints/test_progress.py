"""What drivers report, and what is made of it."""

from dataclasses import replace
from typing import Any

import pytest

from riverlog.checkpoints.progress import Progress, RunState, progress_of, read_progress
from riverlog.checkpoints.records import ProgressNoted, Unreadable, read_fact, write_fact
from riverlog.checkpoints.refusals import Refused
from riverlog.model.limits import PROGRESS_ERROR_LENGTH_MAX, PROGRESS_SILENT_MS_MAX

REPORT: dict[str, Any] = {
    "query": "q",
    "run": "r1",
    "state": "running",
    "began_ms": 100,
    "batch": 7,
    "batch_ms": 40,
    "rows": 1_000,
    "rows_per_second": 25_000.5,
    "watermark_ms": 90,
    "late_rows": 3,
    "state_rows": 12,
    "state_memory_bytes": 4_096,
}


def told(**changed: Any) -> Progress:
    return progress_of({**REPORT, **changed}, heard_ms=1_000)


def test_a_report_is_read() -> None:
    progress = told(rows=None, what="is not known")
    assert (progress.state, progress.batch, progress.rows, progress.late_rows) == (RunState.RUNNING, 7, None, 3)
    assert progress.heard_ms == 1_000


@pytest.mark.parametrize(
    "changed",
    [
        {"state": "asleep"},
        {"state": None},
        {"query": ""},
        {"run": 7},
        {"run": "r" * 10_000},
        {"began_ms": None},
        {"batch": -1},
        {"batch": True},
        {"rows": 1.5},
        {"rows": 2**70},
        {"rows_per_second": "many"},
        {"rows_per_second": float("nan")},
        {"error": ["no"]},
    ],
)
def test_what_is_no_report_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        told(**changed)


def test_an_error_is_cut() -> None:
    assert len(told(error="x" * 10_000).error) == PROGRESS_ERROR_LENGTH_MAX


def test_nothing_is_taken_from_what_a_store_alone_can_know() -> None:
    assert told(late_rows_before=99, heard_ms=5).late_rows_before == 0


def test_a_record_tells_it_again() -> None:
    progress = replace(told(state="failed", error="no disk", error_ms=800), late_rows_before=9)
    record = write_fact(progress.note("/pipelines/orders"))
    fact = read_fact(record.key, record.value)
    assert isinstance(fact, ProgressNoted)
    assert fact.path == "/pipelines/orders"
    assert read_progress(fact.facts) == progress


@pytest.mark.parametrize("facts", [{}, {"heard_ms": "soon"}, {**REPORT, "heard_ms": 1}])
def test_a_record_of_somebody_else_is_unreadable(facts: dict[str, Any]) -> None:
    with pytest.raises(Unreadable):
        read_progress(facts)


def test_late_rows_are_counted_over_all_runs_and_the_last_error_stays() -> None:
    failed = told(state="failed", ended_ms=300, error="no disk", error_ms=300).after(told().after(None))
    again = told(run="r2", began_ms=400, late_rows=0).after(failed)
    assert (again.late_rows, again.late_rows_before) == (0, 3)
    more = told(run="r2", began_ms=400, late_rows=5).after(again)
    assert (more.late_rows, more.late_rows_before) == (5, 3)
    assert (more.state, more.error, more.error_ms) == (RunState.RUNNING, "no disk", 300)


def test_who_was_replaced_or_has_ended_changes_nothing() -> None:
    second = told(run="r2", began_ms=400)
    assert told(state="stopped").after(second) == second
    stopped = told(run="r2", began_ms=400, state="stopped", ended_ms=500).after(second)
    assert second.after(stopped) == stopped


def test_a_driver_that_is_silent_may_be_gone() -> None:
    running = told()
    assert running.state_at(1_000 + PROGRESS_SILENT_MS_MAX) is RunState.RUNNING
    assert running.since_ms(1_000) == 100
    assert running.state_at(1_001 + PROGRESS_SILENT_MS_MAX) is RunState.UNKNOWN
    assert running.since_ms(1_001 + PROGRESS_SILENT_MS_MAX) == 1_000
    stopped = told(state="stopped", ended_ms=700)
    assert stopped.state_at(10**9) is RunState.STOPPED
    assert stopped.since_ms(10**9) == 700
