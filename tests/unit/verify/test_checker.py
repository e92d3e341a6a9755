"""The verdict: complete, ordered, and the same every time."""

from riverlog.verify.anomalies import TornTransaction
from riverlog.verify.checker import judge
from riverlog.verify.history import History, Transaction
from tests.unit.verify.histories import found, read, write


def transaction_of_two(history: History) -> Transaction:
    transaction = history.begin("t", "t1")
    write(history, "a", 0, transaction=transaction)
    write(history, "b", 1, transaction=transaction)
    history.committing(transaction)
    return transaction


def test_an_empty_history_is_clean() -> None:
    verdict = judge(History())
    assert verdict.clean
    assert verdict.counts == {}


def test_a_transaction_of_which_a_part_is_missing_is_torn() -> None:
    history = History()
    history.committed(transaction_of_two(history))
    read(history, (0, "a"), position=3, committed=True)
    assert TornTransaction("t1", seen=("a",), missing=("b",)) in found(history)


def test_one_record_betrays_a_transaction_whose_outcome_is_unknown() -> None:
    history = History()
    transaction_of_two(history)
    read(history, position=3, committed=True)
    assert found(history) == []
    read(history, (0, "a"), position=3, committed=True)
    assert TornTransaction("t1", seen=("a",), missing=("b",)) in found(history)


def test_anomalies_are_counted_and_ordered_by_kind() -> None:
    history = History()
    write(history, "a", 0)
    write(history, "b", 1)
    history.refused(write(history, "c"))
    write(history, "d")
    read(history, (0, "x"), (2, "y"), (3, "a"), (4, "a"))
    verdict = judge(history)
    assert verdict.counts == {"lost": 1, "duplicated": 1, "reordered": 1, "invented": 2, "inconsistent offset": 1}
    assert not verdict.clean
    assert (verdict.written, verdict.acknowledged, verdict.refused, verdict.unknown) == (4, 2, 1, 1)
    assert (verdict.seen, verdict.readings) == (4, 1)
    assert judge(history) == verdict
