"""The judge of histories finds each kind of crime, and none where there is none."""

import pytest

from tests.support.checker import History, judge


@pytest.fixture
def history() -> History:
    """Five values sent, four of them acknowledged; value 4 went unanswered."""
    history = History()
    for offset in range(5):
        value = history.next_value()
        if offset < 4:
            history.acknowledge(offset, value)
    return history


@pytest.mark.parametrize("read", [range(4), range(5)])
def test_an_honest_log_is_acquitted(history: History, read: range) -> None:
    assert judge(history, [(value, value) for value in read]) == []


@pytest.mark.parametrize(
    ("crime", "read"),
    [
        ("lost", [(0, 0), (1, 1), (2, 2)]),
        ("altered", [(0, 0), (1, 1), (2, 2), (3, 4)]),
        ("duplicate", [(0, 0), (1, 1), (2, 2), (3, 3), (4, 3)]),
        ("invented", [(0, 0), (1, 1), (2, 2), (3, 3), (4, 77)]),
        ("reordered", [(0, 0), (1, 2), (2, 1), (3, 3)]),
        ("gap", [(0, 0), (1, 1), (2, 2), (3, 3), (5, 4)]),
    ],
)
def test_each_crime_is_named(history: History, crime: str, read: list[tuple[int, int]]) -> None:
    assert any(wrong.startswith(f"{crime}: ") for wrong in judge(history, read))


def test_two_promises_for_one_offset_are_caught_at_once(history: History) -> None:
    with pytest.raises(AssertionError, match="acknowledged twice"):
        history.acknowledge(0, 4)
