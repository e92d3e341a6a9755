"""Committed offsets that are forgotten, invented, or lead nowhere."""

from riverlog.model.ids import NO_OFFSET
from riverlog.verify.anomalies import CommitBeyondEnd, CommitInvented, CommitWentBack
from riverlog.verify.history import History
from tests.unit.verify.histories import ORDERS, commit, found, look_up, read, sentences


def test_answers_follow_the_commits() -> None:
    history = History()
    look_up(history)
    for offset in (3, 5, 4):
        commit(history, offset)
        look_up(history, offset)
    assert found(history) == []


def test_a_commit_that_was_replaced_comes_back() -> None:
    history = History()
    commit(history, 3)
    commit(history, 5)
    look_up(history, 3)
    assert found(history) == [CommitWentBack("g", ORDERS, 3, 5)]  # type: ignore[arg-type]


def test_a_commit_that_is_forgotten() -> None:
    history = History()
    commit(history, 3)
    look_up(history)
    assert found(history) == [CommitWentBack("g", ORDERS, NO_OFFSET, 3)]  # type: ignore[arg-type]
    assert sentences(history) == ["group g had committed 3 in orders-0; later the answer was none"]


def test_a_commit_whose_outcome_is_unknown_may_count_at_any_time() -> None:
    history = History()
    commit(history, 3, told=False)
    look_up(history)
    commit(history, 5)
    look_up(history, 5)
    look_up(history, 3)
    assert found(history) == []


def test_an_offset_that_nobody_committed() -> None:
    history = History()
    history.commit_refused(history.commit("g", ORDERS, 4))  # type: ignore[arg-type]
    look_up(history, 4)
    assert found(history) == [CommitInvented("g", ORDERS, 4)]  # type: ignore[arg-type]


def test_a_commit_of_an_aborted_transaction_does_not_count() -> None:
    history = History()
    transaction = history.begin("t")
    commit(history, 4, transaction=transaction)
    look_up(history, 4)
    assert found(history) == []
    history.aborted(transaction)
    assert found(history) == [CommitInvented("g", ORDERS, 4)]  # type: ignore[arg-type]


def test_an_offset_behind_the_end() -> None:
    history = History()
    commit(history, 4)
    look_up(history, 4)
    read(history, position=4)
    assert found(history) == []
    read(history, position=3)
    assert found(history) == [CommitBeyondEnd("g", ORDERS, 4, 3)]  # type: ignore[arg-type]
