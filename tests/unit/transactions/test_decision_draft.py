from riverlog.model.machine import Instant, Moment, Reply, Ticket
from riverlog.transactions.commands import SendMarkers
from riverlog.transactions.decision_draft import DecisionDraft
from riverlog.transactions.records import TransactionFact
from riverlog.transactions.states import Transaction
from tests.support.transactions import P0, P1, V2, producer_of

OPEN = Transaction(producer_of(7, 3), timeout_ms=1_000, updated_ms=5).joined([P1, P0], V2, 10)


def turn() -> DecisionDraft:
    return DecisionDraft(Moment(Instant(1.0), 1_000), {"a": OPEN})


def test_a_turn_shows_what_its_facts_make_of_an_id() -> None:
    now = turn()
    assert (now.find("a"), now.find("b")) == (OPEN, None)
    now.write("a", None)
    now.write("b", OPEN)
    assert (now.find("a"), now.find("b")) == (None, OPEN)
    assert now.decision().records == (TransactionFact("a", None), TransactionFact("b", OPEN))


def test_an_end_sends_its_markers_in_order() -> None:
    now = turn()
    now.write("a", OPEN.ended(committed=True, version=V2, now_ms=20))
    assert now.decision().effects == (SendMarkers("a", producer_of(7, 4), True, (P0, P1), V2),)
    now.write("a", OPEN.ended(committed=True, version=V2, now_ms=20).completed(30))
    assert len(now.effects) == 1


def test_answers_and_deadlines() -> None:
    now = turn()
    now.answer(Ticket(4), "yes")
    assert now.decision().replies == (Reply(Ticket(4), "yes"),)
    assert now.in_ms(500) == 1.5
