"""Transactions in a circle."""

from riverlog.verify.anomalies import Anomaly, Cycle, Unseen
from riverlog.verify.history import History, Transaction
from tests.unit.verify.histories import ORDERS, found, read, write


def cycles(history: History) -> list[Anomaly]:
    """Return the circles alone: of what is only written here nobody reads that it is there."""
    return [anomaly for anomaly in found(history) if not isinstance(anomaly, Unseen)]


def committed(history: History, name: str, *reads: str, client: str | None = None) -> Transaction:
    """Write a value of the transaction's name, and read others."""
    transaction = history.begin(client or name, name)
    write(history, name, transaction=transaction)
    transaction.read += [(ORDERS, value) for value in reads]
    history.committing(transaction)
    history.committed(transaction)
    return transaction


def test_each_reads_what_the_one_before_wrote() -> None:
    history = History()
    committed(history, "a")
    committed(history, "b", "a")
    committed(history, "c", "a", "b")
    assert cycles(history) == []


def test_one_that_reads_its_own_record_is_no_circle() -> None:
    history = History()
    committed(history, "a", "a")
    assert cycles(history) == []


def test_two_that_read_from_each_other() -> None:
    history = History()
    committed(history, "a", "b")
    committed(history, "b", "a")
    committed(history, "c", "b")
    assert cycles(history) == [Cycle(("a", "b"))]


def test_the_shortest_way_around_is_told() -> None:
    history = History()
    for name, reads in {"a": "d", "b": "a", "c": "b", "d": "ac"}.items():
        committed(history, name, *reads)
    assert cycles(history) == [Cycle(("a", "d")), Cycle(("b", "c", "d", "a"))]


def test_a_client_that_reads_what_it_writes_only_later() -> None:
    history = History()
    committed(history, "a", "b", client="one")
    committed(history, "b", client="one")
    assert cycles(history) == [Cycle(("a", "b"))]


def test_what_was_aborted_comes_before_nothing() -> None:
    history = History()
    first = committed(history, "a", "b")
    committed(history, "b", "a")
    history.aborted(first)
    read(history, (0, "b"), committed=True)
    assert cycles(history) == []
