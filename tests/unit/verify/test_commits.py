"""Committed offsets that are forgotten, invented, or lead nowhere."""

from riverlog.model.ids import NO_OFFSET, Offset
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
    history.committing(transaction)
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


def committed_in_a_transaction(history: History, offset: int, *, told: bool = True) -> None:
    transaction = history.begin("t")
    commit(history, offset, told=False, transaction=transaction)
    history.committing(transaction)
    if told:
        history.committed(transaction)


def test_an_offset_of_a_committed_transaction_is_not_forgotten() -> None:
    history = History()
    committed_in_a_transaction(history, 5)
    look_up(history)
    assert found(history) == [CommitWentBack("g", ORDERS, Offset(NO_OFFSET), Offset(5))]


def test_an_offset_of_a_committed_transaction_is_not_taken_back() -> None:
    history = History()
    committed_in_a_transaction(history, 5)
    committed_in_a_transaction(history, 9)
    look_up(history, 5)
    assert found(history) == [CommitWentBack("g", ORDERS, Offset(5), Offset(9))]


def test_an_offset_of_a_transaction_that_may_be_committed_may_be_told() -> None:
    history = History()
    committed_in_a_transaction(history, 5, told=False)
    committed_in_a_transaction(history, 9)
    for offset in (9, 5):
        look_up(history, offset)
    assert found(history) == []


def test_an_offset_of_a_transaction_that_nobody_asked_to_commit_is_invented() -> None:
    history = History()
    commit(history, 5, told=False, transaction=history.begin("t"))
    look_up(history, 5)
    assert found(history) == [CommitInvented("g", ORDERS, Offset(5))]
