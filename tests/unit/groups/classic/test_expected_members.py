"""Who is about to join, judged by who asked for the coordinator, and when."""

import pytest

from riverlog.groups.classic.expected_members import ExpectedMembers
from riverlog.groups.limits import ASKED_TOGETHER_MS, ASKS_REMEMBERED_MAX, ASKS_REMEMBERED_MS
from riverlog.model.machine import Instant


def expected(*asks: tuple[int, str], at_ms: int = 0) -> int:
    members = ExpectedMembers()
    for asked_at_ms, connection in asks:
        members.note_lookup("g", connection, Instant(asked_at_ms / 1000))
    return members.count("g", Instant(max((at_ms, *(when for when, _ in asks))) / 1000))


@pytest.mark.parametrize(
    ("asks", "members"),
    [
        ((), 0),
        (((0, "a"),), 1),
        (((0, "a"), (0, "b"), (1, "c")), 3),
        (((0, "a"), (1, "a"), (2, "a")), 1),
        (((0, "a"), (ASKED_TOGETHER_MS + 1, "b")), 1),
        (((0, "a"), (1, "b"), (ASKED_TOGETHER_MS + 2, "c")), 2),
        (((0, "a"), (ASKED_TOGETHER_MS - 1, "a"), (ASKED_TOGETHER_MS + 1, "b")), 2),
    ],
    ids=[
        "nobody",
        "one",
        "together",
        "one that repeats itself",
        "one that asks over another connection",
        "the most that were together",
        "one that was heard of again",
    ],
)
def test_those_count_who_asked_together(asks: tuple[tuple[int, str], ...], members: int) -> None:
    assert expected(*asks) == members


def test_whoever_asked_long_ago_is_not_expected_any_more() -> None:
    assert expected((0, "a"), (10, "b"), at_ms=ASKS_REMEMBERED_MS) == 2
    assert expected((0, "a"), (10, "b"), at_ms=ASKS_REMEMBERED_MS + 5) == 1
    assert expected((0, "a"), (10, "b"), at_ms=ASKS_REMEMBERED_MS + 11) == 0


def test_groups_are_told_apart() -> None:
    members = ExpectedMembers()
    members.note_lookup("g", "a", Instant(0.0))
    members.note_lookup("h", "b", Instant(0.0))
    assert members.count("g", Instant(0.0)) == members.count("h", Instant(0.0)) == 1


def test_of_too_many_questions_the_oldest_are_forgotten() -> None:
    assert expected(*((0, str(number)) for number in range(ASKS_REMEMBERED_MAX + 7))) == ASKS_REMEMBERED_MAX
