"""The windows that the oracle of streams puts a row in."""

from riverlog.pipelines.operators.windows import session, sliding, tumbling
from tests.support.stream_oracle import SECOND_US as S
from tests.support.stream_oracle import windows_of


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
