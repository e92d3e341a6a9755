"""A line about a batch, out of Spark's own account of it."""

from typing import Any

import pytest

from riverlog.pipelines.runtime.progress_line import late_rows, line_of

ACCOUNT: dict[str, Any] = {
    "batchId": 12,
    "batchDuration": 120,
    "numInputRows": 12_000,
    "processedRowsPerSecond": 100_500.4,
    "durationMs": {"triggerExecution": 1_119},
    "eventTime": {"watermark": "2026-11-16T19:43:00.000Z"},
    "stateOperators": [{"numRowsDroppedByWatermark": 1}, {"numRowsDroppedByWatermark": 0}],
    "sources": [
        {"endOffset": '{"orders": {"0": 5, "1": 7}}', "latestOffset": '{"orders": {"0": 9, "1": 7}}'},
        {"endOffset": {"payments": {"0": 5}}, "latestOffset": {"payments": {"0": 5, "1": 2}}},
    ],
    "observedMetrics": {"riverlog:1": {"late": 3, "rows": 9}, "mine": {"late": 5}},
}


def test_a_batch_is_told_in_one_line() -> None:
    assert line_of("revenue", ACCOUNT) == (
        "revenue: batch 12, 12,000 rows, 100,500 rows/s, lag 6, watermark 2026-11-16 19:43:00, 4 late, 1,119 ms"
    )


def test_what_spark_does_not_know_is_left_out() -> None:
    bare = {
        **ACCOUNT,
        "processedRowsPerSecond": float("nan"),
        "durationMs": {},
        "eventTime": {"watermark": "1970-01-01T00:00:00.000Z"},
        "stateOperators": [],
        "sources": [{"endOffset": "RateOffset", "latestOffset": None}],
        "observedMetrics": {},
        "numInputRows": -1,
    }
    assert line_of("q", bare) == "q: batch 12, 0 rows, 0 rows/s, 120 ms"


@pytest.mark.parametrize(("rate", "shown"), [(0.0, "0"), (2.25, "2.2"), (10.4, "10"), (None, "0")])
def test_a_slow_rate_has_a_digit_more(rate: float | None, shown: str) -> None:
    assert f" {shown} rows/s" in line_of("q", {**ACCOUNT, "processedRowsPerSecond": rate})


def test_late_rows_are_ours_and_sparks() -> None:
    assert late_rows(ACCOUNT) == 4
    assert late_rows({**ACCOUNT, "observedMetrics": None}) == 1
