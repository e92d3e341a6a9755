from riverlog.model.machine import Instant, Moment, Ticket
from riverlog.transactions.commands import InitProducer
from riverlog.transactions.decision_draft import DecisionDraft
from riverlog.transactions.limits import TRANSACTION_END_WAIT_MS, WAITING_PER_TRANSACTIONAL_ID_MAX
from riverlog.transactions.live import WaitEnds, WaitingCommands

NOW = DecisionDraft(Moment(Instant(1.0), 1_000), {})


def test_who_waits_is_released_in_order_and_only_once() -> None:
    live = WaitingCommands()
    assert live.wait(InitProducer("a", 1), Ticket(1), NOW)
    assert live.wait(InitProducer("b", 1), Ticket(2), NOW)
    assert live.wait(InitProducer("a", 1), Ticket(3), NOW)
    assert live.timers.get(WaitEnds("a")) == 1.0 + TRANSACTION_END_WAIT_MS / 1000
    assert [each.ticket for each in live.release("a")] == [1, 3]
    assert live.release("a") == []
    assert live.timers.get(WaitEnds("a")) is None


def test_there_is_room_for_so_many() -> None:
    live = WaitingCommands()
    took = [live.wait(InitProducer("a", 1), Ticket(each), NOW) for each in range(WAITING_PER_TRANSACTIONAL_ID_MAX + 1)]
    assert took == [True] * WAITING_PER_TRANSACTIONAL_ID_MAX + [False]
