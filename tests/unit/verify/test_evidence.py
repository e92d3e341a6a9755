"""A history, sorted by partition."""

import pytest

from riverlog.verify.evidence import gather
from riverlog.verify.history import History, Isolation
from tests.unit.verify.histories import read, write


def test_places_come_from_promises_and_from_readers() -> None:
    history = History()
    write(history, "a", 4)
    write(history, "b", -1)
    read(history, (5, "b"), (6, "a"))
    (partition,) = gather(history).partitions
    assert partition.in_order == [(4, "a"), (5, "b"), (6, "a")]
    assert partition.first_seen == partition.last_seen


def test_only_committed_transactions_oblige_readers_of_committed_records() -> None:
    history = History()
    sent = write(history, "a", 0, transaction=history.begin("t"))
    assert sent.transaction is not None
    assert not gather(history).visible(sent, Isolation.READ_COMMITTED)
    assert gather(history).visible(sent, Isolation.READ_UNCOMMITTED)
    assert not gather(history).promised(sent)
    history.committed(sent.transaction)
    assert gather(history).visible(sent, Isolation.READ_COMMITTED)
    assert gather(history).promised(sent)


def test_a_name_for_two_records_is_our_own_mistake() -> None:
    history = History()
    write(history, "a")
    write(history, "a")
    with pytest.raises(AssertionError, match="written to orders-0 twice"):
        gather(history)
