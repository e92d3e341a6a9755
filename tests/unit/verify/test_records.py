"""Records that are there, and should not be, or not so."""

from riverlog.verify.anomalies import (
    AbortedButRead,
    Duplicated,
    InconsistentOffset,
    Invented,
    Lost,
    ReadTooEarly,
    Reordered,
    Rewound,
)
from riverlog.verify.history import History
from tests.unit.verify.histories import ORDERS, found, read, write


def test_a_record_that_stands_twice() -> None:
    history = History()
    write(history, "a", 0)
    read(history, (0, "a"), (1, "a"))
    assert found(history) == [Duplicated(ORDERS, "a", (0, 1))]


def test_a_promise_for_another_place_than_where_the_record_stands() -> None:
    history = History()
    write(history, "a", 7)
    read(history, (8, "a"))
    assert found(history) == [Duplicated(ORDERS, "a", (7, 8))]


def test_a_producer_that_promises_nothing_may_repeat_and_reorder() -> None:
    history = History()
    for value in ("a", "b"):
        write(history, value, once=False)
    read(history, (0, "b"), (1, "a"), (2, "b"))
    assert found(history) == []


def test_records_in_another_order_than_they_were_sent_in() -> None:
    history = History()
    for value, producer in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("a3", "a")):
        write(history, value, producer=producer)
    read(history, (0, "b1"), (1, "a2"), (2, "a1"), (3, "a3"))
    assert found(history) == [Reordered(ORDERS, "a", earlier="a1", later="a2")]


def test_no_order_follows_from_a_place_that_stands_for_two_records() -> None:
    history = History()
    for offset, value in enumerate("abc"):
        write(history, value, offset)
    for value in "de":
        write(history, value)
    read(history, (0, "a"), (1, "d"), (2, "e"))
    assert {type(anomaly) for anomaly in found(history)} == {Lost, InconsistentOffset}


def test_two_records_in_one_place() -> None:
    history = History()
    write(history, "a")
    write(history, "b")
    read(history, (0, "a"), at_end=False)
    read(history, (0, "b"), at_end=False, reader="s")
    assert found(history) == [
        Lost(ORDERS, 0, "a", "shown", "s"),  # type: ignore[arg-type]
        InconsistentOffset(ORDERS, 0, ("a", "b")),  # type: ignore[arg-type]
    ]


def test_a_place_that_was_promised_to_another_record() -> None:
    history = History()
    write(history, "a", 0)
    write(history, "b")
    read(history, (0, "b"), (1, "a"))
    assert InconsistentOffset(ORDERS, 0, ("a", "b")) in found(history)  # type: ignore[arg-type]


def test_a_record_that_nobody_sent_there() -> None:
    history = History()
    read(history, (0, "x"))
    assert found(history) == [Invented(ORDERS, 0, "x")]  # type: ignore[arg-type]


def test_a_reader_that_is_turned_back() -> None:
    history = History()
    for offset, value in enumerate("abc"):
        write(history, value, offset)
    read(history, (0, "a"), (1, "b"), (0, "a"), (1, "b"), (2, "c"))
    assert found(history) == [Rewound(ORDERS, "r", 1, 0)]  # type: ignore[arg-type]


def test_a_reader_that_is_given_a_record_again() -> None:
    history = History()
    write(history, "a", 0)
    read(history, (0, "a"), (0, "a"))
    assert found(history) == [Rewound(ORDERS, "r", 0, 0)]  # type: ignore[arg-type]


def test_a_refused_record_that_is_read() -> None:
    history = History()
    history.refused(write(history, "a"))
    read(history, (0, "a"))
    assert found(history) == [AbortedButRead(ORDERS, 0, "a", "r", "was refused")]  # type: ignore[arg-type]


def test_an_aborted_record_is_for_readers_of_everything() -> None:
    history = History()
    transaction = history.begin("t", "t1")
    write(history, "a", 0, transaction=transaction)
    history.aborted(transaction)
    read(history, (0, "a"), position=2)
    assert found(history) == []
    read(history, (0, "a"), position=2, reader="s", committed=True)
    why = "belongs to t1, which was aborted"
    assert found(history) == [AbortedButRead(ORDERS, 0, "a", "s", why)]  # type: ignore[arg-type]


def test_a_record_that_is_read_before_its_commit_was_asked_for() -> None:
    history = History()
    transaction = history.begin("t", "t1")
    write(history, "a", 0, transaction=transaction)
    read(history, (0, "a"), committed=True)
    history.committing(transaction)
    history.committed(transaction)
    assert found(history) == [ReadTooEarly(ORDERS, 0, "a", "r", "t1")]  # type: ignore[arg-type]
