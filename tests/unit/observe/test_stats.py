"""Counts add up, and every bucket gets what belongs into it."""

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.observe.stats import SECONDS_BOUNDS, CloseReason, ConnectionStats, Histogram, NodeStats, RequestStats


@pytest.mark.parametrize(("seconds", "bucket"), [(0.0, 0), (0.0001, 0), (0.00011, 1), (10.0, 15), (10.1, 16)])
def test_a_bucket_holds_what_is_at_most_its_bound(seconds: float, bucket: int) -> None:
    histogram = Histogram()
    histogram.observe(seconds)
    assert histogram.counts.index(1) == bucket
    assert sum(histogram.counts) == 1
    assert histogram.sum_seconds == seconds


def test_a_copy_does_not_move_with_its_original() -> None:
    histogram = Histogram()
    histogram.observe(1.0)
    copy = histogram.copy()
    histogram.observe(1.0)
    assert sum(copy.counts) == 1
    assert copy.sum_seconds == 1.0


def test_each_stage_is_the_time_between_two_instants() -> None:
    stats = RequestStats("Fetch")
    stats.answered(received=10.0, started=10.002, handled=10.003, ready=10.503, sent=12.503)
    sums = {stage: round(histogram.sum_seconds, 6) for stage, histogram in stats.stages().items()}
    assert sums == {"queue": 0.002, "handle": 0.001, "wait": 0.5, "send": 2.0}
    assert round(stats.total().sum_seconds, 6) == 2.503


def test_quick_and_slow_requests_fill_the_same_histograms() -> None:
    stats = RequestStats("Produce")
    stats.answered(received=0.0, started=0.00001, handled=0.00004, ready=0.00004, sent=0.00006)
    stats.answered(received=0.0, started=0.00001, handled=0.00004, ready=3.0, sent=3.00001)
    assert stats.count == 2
    assert all(sum(histogram.counts) == 2 for histogram in stats.stages().values())
    assert stats.stages()["queue"].counts[0] == 2
    assert stats.stages()["wait"].counts[0] == 1
    assert stats.stages()["wait"].counts[SECONDS_BOUNDS.index(5.0)] == 1
    assert stats.total().counts[0] == 1
    assert stats.total().counts[SECONDS_BOUNDS.index(5.0)] == 1


def test_errors_are_counted_by_code() -> None:
    stats = RequestStats("Produce")
    stats.failed(ErrorCode.CORRUPT_MESSAGE)
    stats.failed(ErrorCode.CORRUPT_MESSAGE)
    stats.failed(ErrorCode.INVALID_RECORD)
    assert stats.errors == {ErrorCode.CORRUPT_MESSAGE: 2, ErrorCode.INVALID_RECORD: 1}


def test_connections_are_open_until_they_end_for_a_reason() -> None:
    connections = ConnectionStats()
    connections.opened()
    connections.opened()
    connections.ended(CloseReason.IDLE)
    assert (connections.accepted, connections.open) == (2, 1)
    assert connections.closed[CloseReason.IDLE] == 1
    assert connections.closed[CloseReason.PEER] == 0


def test_an_api_is_counted_in_one_place() -> None:
    stats = NodeStats()
    assert stats.of_api("Fetch") is stats.of_api("Fetch")
    assert list(stats.requests) == ["Fetch"]
