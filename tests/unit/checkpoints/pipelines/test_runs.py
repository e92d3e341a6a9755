"""Which run of a query stands for it, whatever the clocks of drivers say."""

from typing import Any

import pytest

from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.limits import PROGRESS_SILENT_MS_MAX
from riverlog.checkpoints.pipelines import runs
from riverlog.checkpoints.pipelines.progress import RunProgress, RunState, progress_of
from riverlog.checkpoints.pipelines.runs import Runs, read_runs
from riverlog.checkpoints.records import ProgressNoted, Unreadable, read_fact, write_fact

AHEAD_MS = 120_000


def told(run: str, heard_ms: int, **changed: Any) -> RunProgress:
    return progress_of({"query": "q", "run": run, "state": "running", "began_ms": 1, **changed}, heard_ms=heard_ms)


def after(*reports: RunProgress) -> Runs:
    known = Runs()
    for report in reports:
        known = known.after(report)
    return known


def test_a_driver_whose_clock_is_ahead_hides_nobody() -> None:
    ahead = told("ahead", 10, began_ms=AHEAD_MS)
    known = after(ahead, told("ahead", 20, began_ms=AHEAD_MS, state="stopped"), told("second", 30, began_ms=30))
    assert known.shown(40).run == "second"
    assert [each.run for each in known.alive(40)] == ["second"]


def test_a_run_that_goes_on_is_seen_beside_one_that_began_later_and_stopped() -> None:
    known = after(told("first", 10), told("second", 20), told("second", 30, state="stopped"), told("first", 40))
    assert known.shown(50).run == "first"
    assert [each.run for each in known.alive(50)] == ["first"]


def test_an_end_that_is_told_late_ends_no_other_run() -> None:
    known = after(told("first", 10), told("second", 20), told("first", 30, state="failed", error="no disk"))
    assert (known.shown(40).run, known.shown(40).state) == ("second", RunState.RUNNING)
    assert known.shown(40).error == "no disk"
    assert known.after(told("first", 50)).alive(60) == known.alive(60)


def test_who_is_silent_is_in_doubt_until_another_has_begun() -> None:
    silent_ms = 10 + PROGRESS_SILENT_MS_MAX + 1
    known = after(told("first", 10))
    assert known.in_doubt(20) == ()
    assert [each.run for each in known.in_doubt(silent_ms)] == ["first"]
    assert known.after(told("second", silent_ms)).in_doubt(silent_ms) == ()
    two = after(told("first", 10), told("second", 15), told("first", 20), told("second", 25, state="stopped"))
    assert [each.run for each in two.in_doubt(silent_ms + 20)] == ["first"]


def test_a_report_without_the_secret_of_its_run_is_refused() -> None:
    known = after(told("first", 10, secret="s"))
    for secret in ("t", ""):
        with pytest.raises(RequestRefused, match="is not by the driver"):
            known.after(told("first", 20, state="stopped", secret=secret))
    assert known.after(told("first", 20, state="stopped", secret="s")).alive(20) == ()


def test_late_rows_are_counted_over_all_runs() -> None:
    known = after(told("r1", 10, late_rows=3), told("r1", 20, late_rows=3, state="failed", error="no", error_ms=20))
    known = known.after(told("r2", 30)).after(told("r2", 40, late_rows=5))
    assert (known.shown(50).late_rows, known.shown(50).late_rows_before) == (5, 3)


@pytest.mark.parametrize("success", [{"batch": 4}, {"state": "stopped"}])
def test_the_last_error_goes_when_another_run_succeeds(success: dict[str, Any]) -> None:
    known = after(told("r1", 10, batch=3), told("r1", 20, batch=3, state="failed", error="no", error_ms=20))
    known = known.after(told("r2", 30))
    assert (known.shown(40).error, known.shown(40).error_ms) == ("no", 20)
    known = known.after(told("r2", 40, **success))
    assert (known.shown(50).error, known.shown(50).error_ms) == ("", None)
    known = known.after(told("r1", 60, batch=5))
    assert known.shown(70).error == ""


def test_runs_are_counted_and_one_that_is_over_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "PROGRESS_RUNS_MAX", 2)
    known = after(told("r1", 10), told("r2", 20, late_rows=3, state="stopped"), told("r3", 30))
    assert [each.run for each in known.reports] == ["r1", "r3"]
    assert known.shown(30).late_rows_before == 3
    assert [each.run for each in known.after(told("r4", 40)).reports] == ["r3", "r4"]


def test_a_record_tells_of_all_that_may_be_alive() -> None:
    known = after(
        told("r1", 10, late_rows=2, secret="s"),
        told("r2", 20, late_rows=3, state="failed", error="no"),
        told("r3", 30, late_rows=4),
    )
    record = write_fact(known.note("/p", 40))
    fact = read_fact(record.key, record.value)
    assert isinstance(fact, ProgressNoted)
    again = read_runs(fact.facts)
    assert [each.run for each in again.alive(40)] == ["r1", "r3"]
    assert again.shown(40) == known.shown(40)
    with pytest.raises(RequestRefused):
        again.after(told("r1", 50))


@pytest.mark.parametrize("others", [7, [7], [{}], {}])
def test_a_record_of_somebody_else_is_unreadable(others: Any) -> None:
    facts = {"query": "q", "run": "r", "state": "running", "began_ms": 1, "heard_ms": 1, "late_rows_before": 0}
    assert read_runs(facts).reports
    with pytest.raises(Unreadable):
        read_runs({**facts, "others": others})
