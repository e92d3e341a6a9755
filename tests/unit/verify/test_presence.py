"""Records that are not there, or not for everybody."""

import pytest

from riverlog.verify.anomalies import Lost, Skipped, Unseen
from riverlog.verify.history import History
from tests.unit.verify.histories import ORDERS, commit, found, look_up, read, sentences, write


@pytest.fixture
def history() -> History:
    """Three promised records and one whose outcome nobody knows."""
    history = History()
    for offset, value in enumerate("abc"):
        write(history, value, offset)
    write(history, "d")
    return history


@pytest.mark.parametrize("seen", ["abc", "abcd"])
def test_what_nobody_promised_may_be_there_or_not(history: History, seen: str) -> None:
    read(history, *enumerate(seen))
    assert found(history) == []


def test_a_promised_record_in_the_middle_is_lost(history: History) -> None:
    read(history, (0, "a"), (2, "c"))
    read(history, (0, "a"), (2, "c"), reader="s")
    assert found(history) == [Lost(ORDERS, 1, "b", "acknowledged", "r")]  # type: ignore[arg-type]


def test_a_promised_record_at_the_end_is_lost(history: History) -> None:
    read(history, (0, "a"), (1, "b"))
    assert sentences(history) == ["c was acknowledged at orders-0@2; r did not find it there"]


def test_a_record_that_was_shown_is_lost_though_it_was_never_promised(history: History) -> None:
    read(history, *enumerate("abcd"))
    read(history, *enumerate("abc"), reader="s")
    assert found(history) == [Lost(ORDERS, 3, "d", "shown", "s")]  # type: ignore[arg-type]


def test_a_promise_without_a_place_is_kept_or_not(history: History) -> None:
    write(history, "e", -1)
    read(history, *enumerate("abc"))
    assert sentences(history) == ["e was acknowledged at orders-0; r did not find it there"]


def test_what_was_promised_after_a_reader_began_is_not_owed_to_it() -> None:
    history = History()
    late = write(history, "a")
    read(history)
    history.acknowledged(late)
    read(history, (0, "a"), reader="s")
    assert found(history) == []


def test_what_nobody_came_to_is_unseen(history: History) -> None:
    read(history, (0, "a"), at_end=False)
    assert found(history) == [Unseen(ORDERS, 1, "b"), Unseen(ORDERS, 2, "c")]  # type: ignore[arg-type]


def test_a_reader_that_goes_past_a_record(history: History) -> None:
    read(history, (0, "a"), (2, "c"), reader="hasty", at_end=False)
    read(history, *enumerate("abc"))
    assert found(history) == [Skipped(ORDERS, 1, "b", "hasty")]  # type: ignore[arg-type]


def test_a_reader_owes_nothing_before_its_start(history: History) -> None:
    read(history, (2, "c"), reader="late", start=2, at_end=False)
    read(history, *enumerate("abc"))
    assert found(history) == []


def test_a_group_that_goes_past_a_record_between_two_members(history: History) -> None:
    read(history, (0, "a"), reader="first", group="g", at_end=False)
    commit(history, 2)
    look_up(history, 2)
    read(history, (2, "c"), reader="second", group="g", start=2, at_end=False)
    read(history, *enumerate("abc"))
    assert found(history) == [Skipped(ORDERS, 1, "b", "group g")]  # type: ignore[arg-type]


def test_a_transaction_that_is_committed_and_whose_records_are_nowhere_is_lost() -> None:
    history = History()
    transaction = history.begin("t", "t1")
    write(history, "a", transaction=transaction)  # nobody was told of it alone
    write(history, "b", transaction=transaction)
    history.committing(transaction)
    history.committed(transaction)
    read(history, position=3, committed=True)
    assert sentences(history) == [
        f"{value} was committed by t1 at orders-0; r did not find it there" for value in ("a", "b")
    ]


def test_a_record_that_its_producer_was_refused_is_not_promised_by_its_transaction() -> None:
    history = History()
    transaction = history.begin("t", "t1")
    history.refused(write(history, "a", transaction=transaction))
    history.committing(transaction)
    history.committed(transaction)
    read(history, position=3, committed=True)
    assert found(history) == []


def test_a_reader_that_ends_before_a_commit_need_not_be_given_what_it_commits() -> None:
    history = History()
    transaction = history.begin("t", "t1")
    write(history, "a", 0, transaction=transaction)
    read(history, position=0, committed=True)
    history.committing(transaction)
    history.committed(transaction)
    read(history, (0, "a"), position=2, committed=True)
    assert found(history) == []
