"""What drivers report, and what is made of it."""

from dataclasses import asdict, replace
from typing import Any

import pytest

from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.limits import PROGRESS_ERROR_LENGTH_MAX, PROGRESS_SILENT_MS_MAX
from riverlog.checkpoints.pipelines.progress import RunProgress, RunState, progress_of, read_progress
from riverlog.checkpoints.records import Unreadable

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


def told(**changed: Any) -> RunProgress:
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
    with pytest.raises(RequestRefused):
        told(**changed)


def test_an_error_is_cut() -> None:
    assert len(told(error="x" * 10_000).error) == PROGRESS_ERROR_LENGTH_MAX


def test_nothing_is_taken_from_what_a_store_alone_can_know() -> None:
    assert told(late_rows_before=99, heard_ms=5).late_rows_before == 0


def test_a_report_that_was_written_down_is_read_again() -> None:
    progress = replace(told(secret="s", state="failed", error="no disk", error_ms=800), late_rows_before=9)
    assert read_progress(asdict(progress)) == progress


def test_a_secret_is_not_kept_but_what_proves_it() -> None:
    assert told(secret="s").proof == told(secret="s").proof != told(secret="t").proof
    assert told().proof == ""
    assert "hidden" not in repr(told(secret="hidden"))
    assert told(proof=told(secret="s").proof).proof == ""
    for secret in (7, "s" * 10_000):
        with pytest.raises(RequestRefused):
            told(secret=secret)


@pytest.mark.parametrize(
    "facts", [{}, {"heard_ms": "soon"}, {**REPORT, "heard_ms": 1}, {**REPORT, "heard_ms": float("inf")}]
)
def test_a_record_of_somebody_else_is_unreadable(facts: dict[str, Any]) -> None:
    with pytest.raises(Unreadable):
        read_progress(facts)


def test_a_driver_that_is_silent_may_be_gone() -> None:
    running = told()
    assert running.state_at(1_000 + PROGRESS_SILENT_MS_MAX) is RunState.RUNNING
    assert running.since_ms(1_000) == 100
    assert running.state_at(1_001 + PROGRESS_SILENT_MS_MAX) is RunState.UNKNOWN
    assert running.since_ms(1_001 + PROGRESS_SILENT_MS_MAX) == 1_000
    stopped = told(state="stopped", ended_ms=700)
    assert stopped.state_at(10**9) is RunState.STOPPED
    assert stopped.since_ms(10**9) == 700
