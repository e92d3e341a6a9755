import pytest

from riverlog.pipelines.operators.windows import (
    Session,
    Sliding,
    Tumbling,
    session,
    sliding,
    tumbling,
    windows_of,
    words_of,
)

S = 1_000_000


def test_kinds_are_named_with_spans() -> None:
    assert tumbling("1 minute") == Tumbling(60_000)
    assert tumbling("1 day", offset="6 hours") == Tumbling(86_400_000, 21_600_000)
    assert sliding("1 minute", every="20 seconds") == Sliding(60_000, 20_000)
    assert session("30s") == Session(30_000)


def test_windows_that_would_leave_rows_out_are_refused() -> None:
    with pytest.raises(ValueError, match="a window of 1 minute every 2 minutes leaves rows out"):
        sliding("1 minute", every="2 minutes")


def test_a_row_is_in_one_tumbling_window_whose_end_is_not_part_of_it() -> None:
    assert windows_of(tumbling("10 seconds"), 0) == [(0, 10 * S)]
    assert windows_of(tumbling("10 seconds"), 10 * S - 1) == [(0, 10 * S)]
    assert windows_of(tumbling("10 seconds"), 10 * S) == [(10 * S, 20 * S)]
    assert windows_of(tumbling("10 seconds"), -1) == [(-10 * S, 0)]
    assert windows_of(tumbling("10 seconds", offset="3 seconds"), 12 * S) == [(3 * S, 13 * S)]


def test_a_row_is_in_several_sliding_windows() -> None:
    assert windows_of(sliding("10 seconds", every="5 seconds"), 12 * S) == [(5 * S, 15 * S), (10 * S, 20 * S)]
    uneven = sliding("10 seconds", every="4 seconds")
    assert windows_of(uneven, 8 * S) == [(0, 10 * S), (4 * S, 14 * S), (8 * S, 18 * S)]
    assert windows_of(uneven, 11 * S) == [(4 * S, 14 * S), (8 * S, 18 * S)]


def test_a_row_is_a_session_by_itself() -> None:
    assert windows_of(session("5 seconds"), 7 * S) == [(7 * S, 12 * S)]


def test_windows_are_described() -> None:
    assert words_of(tumbling("1 minute")) == "windows of 1 minute"
    assert words_of(sliding("90 seconds", every="1500 ms")) == "windows of 90 seconds every 1500 milliseconds"
    assert words_of(session("2 hours")) == "sessions with a gap of 2 hours"
