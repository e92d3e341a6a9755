"""Who may write with a transactional id."""

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerId
from riverlog.transactions.commands import InitProducer, NeedsProducerId, ProducerReply
from riverlog.transactions.records import TransactionFact
from riverlog.transactions.states import Transaction, TransactionState
from tests.support.transactions import ID, P0, V2, Coordinator, producer_of


def code_of(coordinator: Coordinator, command: InitProducer) -> ErrorCode:
    reply = coordinator.ask(command)
    assert isinstance(reply, ProducerReply)
    return reply.code


def given(producer: tuple[int, int], state: TransactionState = TransactionState.EMPTY) -> Coordinator:
    """Return a coordinator that knows a producer."""
    coordinator = Coordinator()
    held = Transaction(producer_of(*producer), 60_000, coordinator.now_ms, state)
    if state is TransactionState.ONGOING:
        held = held.joined([P0], V2, coordinator.now_ms)
    coordinator.log.append(TransactionFact(ID, held))
    coordinator.restart()
    return coordinator


def test_the_first_producer_needs_an_id_that_nobody_had() -> None:
    coordinator = Coordinator()
    assert coordinator.ask(InitProducer(ID, 60_000, new_id=ProducerId(5))) == ProducerReply(producer=producer_of(5, 0))
    fresh = Coordinator()
    assert fresh.answers[fresh.submit(InitProducer(ID, 60_000))] == NeedsProducerId()
    assert fresh.log == []


def test_each_new_producer_has_the_next_epoch() -> None:
    coordinator = Coordinator()
    first = coordinator.init()
    assert coordinator.init() == producer_of(first.id, 1)
    assert coordinator.init(timeout_ms=5_000) == producer_of(first.id, 2)
    assert coordinator.held().timeout_ms == 5_000


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_time_out_must_be_one(timeout_ms: int) -> None:
    assert code_of(Coordinator(), InitProducer(ID, timeout_ms)) is ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_a_producer_that_goes_on_gets_its_next_epoch_and_the_same_when_it_asks_again() -> None:
    coordinator = Coordinator()
    first = coordinator.init()
    second = coordinator.init(first)
    assert second == producer_of(first.id, 1)
    assert coordinator.init(first) == second
    coordinator.restart()
    assert coordinator.init(first) == second
    assert coordinator.init(second) == producer_of(first.id, 2)
    assert code_of(coordinator, InitProducer(ID, 60_000, first)) is ErrorCode.PRODUCER_FENCED


def test_a_producer_whose_id_was_taken_over_is_fenced() -> None:
    coordinator = Coordinator()
    first = coordinator.init()
    coordinator.init()
    assert code_of(coordinator, InitProducer(ID, 60_000, first)) is ErrorCode.PRODUCER_FENCED
    assert code_of(coordinator, InitProducer(ID, 60_000, producer_of(99, 0))) is ErrorCode.PRODUCER_FENCED


def test_a_producer_whose_id_was_forgotten_gets_a_new_one() -> None:
    coordinator = Coordinator()
    assert coordinator.init(producer_of(4, 9)) == producer_of(1_000, 0)


def test_used_up_epochs_lead_to_a_new_id_also_for_one_that_asks_again() -> None:
    coordinator = given((7, 32_766))
    assert coordinator.answers[coordinator.submit(InitProducer(ID, 60_000))] == NeedsProducerId()
    assert coordinator.init(producer_of(7, 32_766)) == producer_of(1_000, 0)
    assert coordinator.init(producer_of(7, 32_766)) == producer_of(1_000, 0)
    assert given((7, 32_766)).init() == producer_of(1_000, 0)


def test_an_open_transaction_is_aborted_before_somebody_takes_over() -> None:
    coordinator = Coordinator()
    first = coordinator.init()
    coordinator.add(first)
    ticket = coordinator.submit(InitProducer(ID, 60_000))
    assert ticket not in coordinator.answers
    assert coordinator.held().state is TransactionState.PREPARE_ABORT
    (marker,) = coordinator.write_markers()
    assert (marker.producer, marker.committed, marker.partitions) == (producer_of(first.id, 1), False, (P0,))
    assert coordinator.answers[ticket] == ProducerReply(producer=producer_of(first.id, 2))
    assert coordinator.add(first) is ErrorCode.PRODUCER_FENCED
    assert coordinator.end(first).code is ErrorCode.PRODUCER_FENCED


def test_a_producer_may_abort_its_own_transaction_and_go_on() -> None:
    coordinator = given((7, 3), TransactionState.ONGOING)
    assert coordinator.init(producer_of(7, 3)) == producer_of(7, 4)


@pytest.mark.parametrize("stale", [(7, 2), (7, 4), (8, 3)])
def test_a_zombie_cannot_abort_the_transaction_of_its_successor(stale: tuple[int, int]) -> None:
    coordinator = given((7, 3), TransactionState.ONGOING)
    assert code_of(coordinator, InitProducer(ID, 60_000, producer_of(*stale))) is ErrorCode.PRODUCER_FENCED
    assert coordinator.held().state is TransactionState.ONGOING


@pytest.mark.parametrize("expected", [None, (7, 32_766)])
def test_the_last_epoch_fences_and_is_given_to_nobody(expected: tuple[int, int] | None) -> None:
    coordinator = given((7, 32_766), TransactionState.ONGOING)
    assert coordinator.init(None if expected is None else producer_of(*expected)) == producer_of(1_000, 0)
