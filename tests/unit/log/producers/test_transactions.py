"""How far all transactions are decided."""

from hypothesis import given
from hypothesis import strategies as st

from riverlog.log.producers.transactions import OpenTransactions
from riverlog.model.ids import Offset


def test_the_oldest_open_transaction_holds_readers() -> None:
    transactions = OpenTransactions()
    assert transactions.first_unstable_offset is None
    transactions.begin(Offset(5))
    transactions.begin(Offset(8))
    transactions.decide(Offset(8), Offset(9))
    assert transactions.undecided_from(Offset(10)) == 5
    transactions.committed(Offset(10))
    assert transactions.first_unstable_offset == 5
    transactions.decide(Offset(5), Offset(10))
    assert transactions.undecided_from(Offset(11)) == 11
    transactions.committed(Offset(11))
    assert transactions.first_unstable_offset is None
    assert len(transactions) == 0


def test_a_marker_that_is_not_committed_decides_nothing_for_readers() -> None:
    transactions = OpenTransactions([Offset(3)])
    transactions.decide(Offset(3), Offset(7))
    transactions.committed(Offset(7))
    assert transactions.first_unstable_offset == 3
    transactions.committed(Offset(8))
    assert transactions.first_unstable_offset is None


def test_what_is_cut_off_opens_what_it_had_decided() -> None:
    transactions = OpenTransactions()
    transactions.begin(Offset(0))
    transactions.begin(Offset(1))
    transactions.decide(Offset(0), Offset(2))
    transactions.begin(Offset(3))
    transactions.truncate(Offset(2))
    transactions.committed(Offset(9))
    assert transactions.first_unstable_offset == 0
    assert len(transactions) == 2


@given(st.lists(st.integers(0, 3)), st.data())
def test_any_order_of_ends_agrees_with_looking_at_all(steps: list[int], data: st.DataObject) -> None:
    transactions = OpenTransactions()
    undecided: list[int] = []
    decided: dict[int, int] = {}  # first offset by marker
    for offset, step in enumerate(steps):
        if step < 2 or not undecided:
            transactions.begin(Offset(offset))
            undecided.append(offset)
        else:
            first = undecided.pop(data.draw(st.integers(0, len(undecided) - 1)))
            decided[offset] = first
            transactions.decide(Offset(first), Offset(offset))
            assert transactions.undecided_from(Offset(offset + 1)) == min(undecided, default=offset + 1)
        if step in (1, 3):
            upto = data.draw(st.integers(0, offset + 1))
            transactions.committed(Offset(upto))
            decided = {marker: first for marker, first in decided.items() if marker >= upto}
        assert transactions.first_unstable_offset == min([*undecided, *decided.values()], default=None)
