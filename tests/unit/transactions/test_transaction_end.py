"""Which end of a transaction is accepted, which is a repetition, and which comes too late."""

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.model.transactions import TransactionVersion
from riverlog.transactions.commands import EndTransaction, ProducerReply
from riverlog.transactions.records import TransactionFact
from riverlog.transactions.states import Transaction, TransactionState
from tests.support.transactions import ID, P0, P1, V2, Coordinator, producer_of

V1 = TransactionVersion.CLASSIC


def code(coordinator: Coordinator, *args: object, **more: object) -> ErrorCode:
    reply = coordinator.end(*args, **more)  # type: ignore[arg-type]
    assert isinstance(reply, ProducerReply)
    return reply.code


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("version", [V1, V2])
def test_an_end_is_answered_when_it_is_decided_and_complete_when_all_know(
    committed: bool, version: TransactionVersion
) -> None:
    coordinator = Coordinator()
    first = coordinator.init()
    coordinator.add(first, P0, P1, version=version)
    after = producer_of(first.id, 1 if version is V2 else 0)
    assert coordinator.end(first, committed=committed, version=version) == ProducerReply(producer=after)
    assert coordinator.held().state.is_ending
    (markers,) = coordinator.write_markers()
    assert (markers.producer, markers.committed, markers.partitions) == (after, committed, (P0, P1))
    assert markers.version is version
    assert (coordinator.held().state.is_ended, coordinator.held().is_committed) == (True, committed)
    assert coordinator.add(after) is ErrorCode.NONE


def test_by_the_newer_rules_the_epoch_tells_a_repetition_from_the_next_end() -> None:
    coordinator = Coordinator()
    first = coordinator.init()
    coordinator.add(first)
    coordinator.end(first)
    coordinator.write_markers()
    coordinator.restart()
    after = producer_of(first.id, 1)
    assert coordinator.end(first) == ProducerReply(producer=after)
    assert code(coordinator, first, committed=False) is ErrorCode.INVALID_TXN_STATE
    assert code(coordinator, after) is ErrorCode.INVALID_TXN_STATE
    assert coordinator.end(after, committed=False) == ProducerReply(producer=producer_of(first.id, 2))


def test_by_the_newer_rules_a_delayed_end_cannot_decide_a_later_transaction() -> None:
    coordinator = Coordinator()
    first = coordinator.init()
    coordinator.add(first)
    coordinator.end(first)
    coordinator.write_markers()
    after = producer_of(first.id, 1)
    coordinator.add(after)
    assert code(coordinator, first) is ErrorCode.PRODUCER_FENCED
    assert code(coordinator, first, committed=False) is ErrorCode.PRODUCER_FENCED
    assert coordinator.held().state is TransactionState.ONGOING


def test_an_end_that_is_repeated_while_markers_are_written_waits_for_them() -> None:
    coordinator = Coordinator()
    first = coordinator.init()
    coordinator.add(first)
    coordinator.end(first)
    ticket = coordinator.submit(EndTransaction(ID, first, True, V2))
    assert ticket not in coordinator.answers
    assert code(coordinator, first, committed=False) is ErrorCode.INVALID_TXN_STATE
    assert code(coordinator, producer_of(first.id, 1)) is ErrorCode.PRODUCER_FENCED
    coordinator.write_markers()
    assert coordinator.answers[ticket] == ProducerReply(producer=producer_of(first.id, 1))


def test_by_the_older_rules_the_state_alone_tells() -> None:
    coordinator = Coordinator()
    first = coordinator.init()
    assert code(coordinator, first, version=V1) is ErrorCode.INVALID_TXN_STATE
    assert code(coordinator, first, version=V1, committed=False) is ErrorCode.INVALID_TXN_STATE
    coordinator.add(first, version=V1)
    coordinator.end(first, version=V1)
    waits = coordinator.submit(EndTransaction(ID, first, True, V1))
    assert code(coordinator, first, version=V1, committed=False) is ErrorCode.INVALID_TXN_STATE
    coordinator.write_markers()
    assert coordinator.answers[waits] == ProducerReply(producer=first)
    assert code(coordinator, first, version=V1) is ErrorCode.NONE
    assert code(coordinator, first, version=V1, committed=False) is ErrorCode.INVALID_TXN_STATE


def test_an_end_of_somebody_else_is_refused() -> None:
    coordinator = Coordinator()
    assert code(coordinator, producer_of(1, 0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    first = coordinator.init()
    coordinator.add(first)
    for version in (V1, V2):
        other, later = producer_of(99, 0), producer_of(first.id, 1)
        assert code(coordinator, other, version=version) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert code(coordinator, later, version=version) is ErrorCode.PRODUCER_FENCED
    assert coordinator.held().state is TransactionState.ONGOING


def test_nothing_can_be_aborted_but_not_committed() -> None:
    coordinator = Coordinator()
    first = coordinator.init()
    assert code(coordinator, first) is ErrorCode.INVALID_TXN_STATE
    after = producer_of(first.id, 1)
    assert coordinator.end(first, committed=False) == ProducerReply(producer=after)
    assert coordinator.held().state is TransactionState.COMPLETE_ABORT
    assert coordinator.markers == []
    assert coordinator.end(first, committed=False) == ProducerReply(producer=after)


def test_used_up_epochs_lead_to_a_new_id_also_for_an_end_that_is_repeated() -> None:
    coordinator = Coordinator()
    held = Transaction(producer_of(7, 32_766), 60_000, coordinator.now_ms).joined([P0], V2, coordinator.now_ms)
    coordinator.log.append(TransactionFact(ID, held))
    coordinator.restart()
    new = producer_of(1_000, 0)
    assert coordinator.end(held.producer) == ProducerReply(producer=new)
    (markers,) = coordinator.write_markers()
    assert markers.producer == producer_of(7, 32_767)
    assert coordinator.end(held.producer) == ProducerReply(producer=new)
    assert coordinator.add(new) is ErrorCode.NONE
    assert code(coordinator, held.producer) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_many_transactions_rotate_the_producer_id() -> None:
    coordinator = Coordinator()
    producer = producer_of(7, 32_700)
    coordinator.log.append(TransactionFact(ID, Transaction(producer, 60_000, coordinator.now_ms)))
    coordinator.restart()
    written: list[tuple[int, int]] = []
    for _ in range(100):
        assert coordinator.add(producer) is ErrorCode.NONE
        written.append(producer)
        producer = coordinator.end(producer).producer
        coordinator.write_markers()
    assert written == [(7, epoch) for epoch in range(32_700, 32_767)] + [(1_000, epoch) for epoch in range(33)]
