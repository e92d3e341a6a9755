"""The transactions machine: partitions, waiting, time, and what a restart leaves."""

from dataclasses import replace

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.model.settings import NodeSettings
from riverlog.model.transactions import PRODUCER_EPOCH_MAX, ProducerIdentity, TransactionOutcome, TransactionVersion
from riverlog.transactions import machine
from riverlog.transactions.commands import (
    AddPartitions,
    DescribeTransactions,
    InitProducer,
    ListTransactions,
    MarkersWritten,
    PartitionsReply,
    ProducerReply,
    VerifyPartitions,
)
from riverlog.transactions.limits import TRANSACTION_END_WAIT_MS
from riverlog.transactions.machine import refused
from riverlog.transactions.records import TransactionFact
from riverlog.transactions.states import Transaction, TransactionState
from tests.support.transactions import ID, P0, P1, V2, Coordinator, producer_of

DAY = 86_400.0
CLASSIC = TransactionVersion.CLASSIC


def begun() -> tuple[Coordinator, machine.TransactionsMachine]:
    coordinator = Coordinator()
    coordinator.add(coordinator.init())
    return coordinator, coordinator.machine


def verify(coordinator: Coordinator, producer: tuple[int, int] = (1_000, 0)) -> tuple[ErrorCode, ...]:
    codes: tuple[ErrorCode, ...] = coordinator.ask(VerifyPartitions(ID, producer_of(*producer), (P0, P1))).codes
    return codes


def test_only_the_producer_adds_partitions() -> None:
    coordinator = Coordinator()
    assert coordinator.add(producer_of(1, 0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    first = coordinator.init()
    assert coordinator.add(producer_of(99, 0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert coordinator.add(producer_of(first.id, 1)) is ErrorCode.PRODUCER_FENCED
    assert coordinator.add(first, P0, P1, version=TransactionVersion.CLASSIC) is ErrorCode.NONE
    assert coordinator.held().partitions == {P0, P1}


def test_partitions_that_are_in_the_transaction_are_not_written_again() -> None:
    coordinator, _ = begun()
    written = len(coordinator.log)
    assert coordinator.add(producer_of(1_000, 0)) is ErrorCode.NONE
    assert len(coordinator.log) == written


def test_verification_says_which_partitions_belong_to_the_transaction() -> None:
    coordinator, _ = begun()
    assert verify(coordinator) == (ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE)
    assert verify(coordinator, (1_000, 1)) == (ErrorCode.PRODUCER_FENCED,) * 2
    assert verify(coordinator, (7, 0)) == (ErrorCode.INVALID_PRODUCER_ID_MAPPING,) * 2
    assert verify(Coordinator()) == (ErrorCode.INVALID_PRODUCER_ID_MAPPING,) * 2
    coordinator.end(producer_of(1_000, 0), version=TransactionVersion.CLASSIC)
    assert verify(coordinator) == (ErrorCode.CONCURRENT_TRANSACTIONS,) * 2
    coordinator.write_markers()
    assert verify(coordinator) == (ErrorCode.TRANSACTION_ABORTABLE,) * 2


def test_who_wants_to_go_on_waits_for_the_end_and_then_goes_on() -> None:
    coordinator, _ = begun()
    after = coordinator.end(producer_of(1_000, 0)).producer
    ticket = coordinator.submit(AddPartitions(ID, after, (P1,), V2))
    assert ticket not in coordinator.answers
    coordinator.write_markers()
    assert coordinator.answers[ticket] == PartitionsReply((ErrorCode.NONE,))
    assert (coordinator.held().state, coordinator.held().partitions) == (TransactionState.ONGOING, {P1})


def test_nobody_waits_for_long() -> None:
    coordinator, _ = begun()
    after = coordinator.end(producer_of(1_000, 0)).producer
    adds, inits = coordinator.submit(AddPartitions(ID, after, (P1,), V2)), coordinator.submit(InitProducer(ID, 1))
    coordinator.pass_time(TRANSACTION_END_WAIT_MS / 1000)
    assert coordinator.answers[adds] == PartitionsReply((ErrorCode.CONCURRENT_TRANSACTIONS,))
    assert coordinator.answers[inits] == ProducerReply(ErrorCode.CONCURRENT_TRANSACTIONS)
    coordinator.write_markers()
    assert coordinator.held().state is TransactionState.COMPLETE_COMMIT


def test_markers_may_be_reported_twice_late_or_for_nobody() -> None:
    coordinator, _ = begun()
    first = producer_of(1_000, 0)
    coordinator.submit(MarkersWritten(ID, first))
    coordinator.submit(MarkersWritten("nobody", first))
    assert coordinator.held().state is TransactionState.ONGOING
    after = coordinator.end(first).producer
    coordinator.submit(MarkersWritten(ID, first))
    assert coordinator.held().state is TransactionState.PREPARE_COMMIT
    coordinator.write_markers()
    coordinator.add(after)
    coordinator.end(after, committed=False)
    coordinator.submit(MarkersWritten(ID, after))  # of the end before
    assert coordinator.held().state is TransactionState.PREPARE_ABORT


def test_a_transaction_that_stays_open_is_aborted_with_an_epoch_of_its_own() -> None:
    coordinator = Coordinator()
    first = coordinator.init(timeout_ms=10_000)
    coordinator.pass_time(100)
    coordinator.add(first)
    coordinator.pass_time(5)
    coordinator.add(first, P1)
    coordinator.pass_time(4.9)
    assert coordinator.held().state is TransactionState.ONGOING
    coordinator.pass_time(0.1)
    (markers,) = coordinator.write_markers()
    assert (markers.producer, markers.committed) == (producer_of(first.id, 1), False)
    assert coordinator.add(first) is ErrorCode.PRODUCER_FENCED
    assert coordinator.end(first, committed=False, version=CLASSIC).code is ErrorCode.PRODUCER_FENCED


def out_of_time(epoch: int = 0) -> tuple[Coordinator, ProducerIdentity]:
    """Return a coordinator that has aborted a producer's transaction because its time was up."""
    coordinator, producer = Coordinator(), producer_of(7, epoch)
    coordinator.log.append(TransactionFact(ID, Transaction(producer, 10_000, 0).joined([P0], V2, 0)))
    coordinator.restart()
    coordinator.pass_time(11)
    return coordinator, producer


def test_a_producer_whose_time_was_up_may_go_on_and_commits_nothing() -> None:
    coordinator, producer = out_of_time()
    assert coordinator.end(producer, committed=True).code is ErrorCode.INVALID_TXN_STATE
    coordinator.write_markers()
    assert coordinator.end(producer, committed=True).code is ErrorCode.INVALID_TXN_STATE
    assert coordinator.end(producer, committed=False) == ProducerReply(producer=producer_of(7, 1))
    assert coordinator.init(producer) == producer_of(7, 1)
    assert coordinator.add(producer_of(7, 1)) is ErrorCode.NONE
    assert coordinator.ask(InitProducer(ID, 60_000, producer)).code is ErrorCode.PRODUCER_FENCED


def test_a_producer_whose_time_was_up_does_not_go_on_with_the_epoch_that_only_fences() -> None:
    coordinator, producer = out_of_time(PRODUCER_EPOCH_MAX - 1)
    coordinator.write_markers()
    assert coordinator.end(producer, committed=False).code is ErrorCode.PRODUCER_FENCED
    assert coordinator.ask(InitProducer(ID, 60_000, producer)).code is ErrorCode.PRODUCER_FENCED


def test_a_transaction_that_has_ended_is_not_aborted_for_an_older_one() -> None:
    coordinator = Coordinator()
    producer = coordinator.init(timeout_ms=10_000)
    for _ in range(4):
        coordinator.add(producer)
        coordinator.pass_time(6)
        producer = coordinator.end(producer).producer
        coordinator.write_markers()
    coordinator.pass_time(100)
    assert coordinator.held().state is TransactionState.COMPLETE_COMMIT


def test_after_a_restart_markers_are_sent_again_and_time_runs_on() -> None:
    coordinator = Coordinator()
    first = coordinator.init(timeout_ms=10_000)
    coordinator.add(first)
    coordinator.end(first)
    coordinator.restart()
    assert coordinator.machine.next_deadline() == 0.0
    coordinator.pass_time(0)
    (markers,) = coordinator.write_markers()
    assert (markers.committed, markers.partitions) == (True, (P0,))
    coordinator.add(producer_of(first.id, 1))
    coordinator.pass_time(9)
    coordinator.restart()
    coordinator.pass_time(0.9)
    assert coordinator.held().state is TransactionState.ONGOING
    coordinator.pass_time(0.2)
    assert coordinator.held().state is TransactionState.PREPARE_ABORT


def test_a_clock_that_was_wrong_does_not_keep_a_transaction_open_for_longer_than_its_time() -> None:
    coordinator = Coordinator()
    held = Transaction(producer_of(7, 0), 10_000, 0).joined([P0], V2, coordinator.now_ms + 1_000_000)
    coordinator.log.append(TransactionFact(ID, held))
    coordinator.restart()
    coordinator.pass_time(10)
    assert coordinator.held().state is TransactionState.PREPARE_ABORT


def test_ids_that_are_idle_for_too_long_are_forgotten_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "TRANSACTIONAL_IDS_EXPIRED_PER_TURN_MAX", 2)
    coordinator = Coordinator(replace(NodeSettings(), transaction_max_timeout_ms=2_000_000_000))
    names = [f"id-{number}" for number in range(7)]
    for name in names:
        coordinator.ask(InitProducer(name, 2_000_000_000))
    coordinator.ask(AddPartitions(names[3], coordinator.held(names[3]).producer, (P0,), V2))
    coordinator.pass_time(6 * DAY)
    coordinator.ask(InitProducer(names[5], 60_000))
    coordinator.pass_time(1 * DAY + 3_601)
    assert sorted(coordinator.machine.state) == [names[3], names[5]]
    coordinator.restart()
    assert sorted(coordinator.machine.state) == [names[3], names[5]]


def test_ids_are_described_and_listed() -> None:
    coordinator, _ = begun()
    coordinator.ask(InitProducer("idle", 60_000))
    described = coordinator.ask(DescribeTransactions(("idle", "nobody")))
    assert [each and each.state for each in described] == [TransactionState.EMPTY, None]

    def listed(**filters: object) -> list[str]:
        found = coordinator.ask(ListTransactions(**filters))  # type: ignore[arg-type]
        return [name for name, _ in found]

    assert listed() == ["idle", ID]
    assert listed(states=frozenset({TransactionState.ONGOING})) == [ID]
    assert listed(producer_ids=frozenset({1_001})) == ["idle"]
    assert listed(started_before_ms=coordinator.now_ms) == ["idle"]


def test_a_snapshot_gives_the_same_machine() -> None:
    coordinator, original = begun()
    coordinator.log = list(original.snapshot())
    coordinator.restart()
    assert coordinator.machine.state == original.state


def test_every_command_can_be_refused() -> None:
    code = ErrorCode.NOT_COORDINATOR
    assert refused(InitProducer(ID, 1), code) == ProducerReply(code)
    assert refused(VerifyPartitions(ID, producer_of(1, 0), (P0, P1)), code) == PartitionsReply((code, code))


def test_every_end_is_counted_once_and_by_its_cause() -> None:
    coordinator = Coordinator()
    producer = coordinator.init()
    for committed in (True, False):
        coordinator.add(producer)
        before, producer = producer, coordinator.end(producer, committed=committed).producer
        coordinator.write_markers()
        coordinator.end(before, committed=committed)  # the same again
    coordinator.end(producer, committed=False)  # there was nothing to abort
    coordinator.add(producer := coordinator.init())
    coordinator.add(coordinator.init())
    coordinator.pass_time(61)
    assert coordinator.ended == dict.fromkeys(TransactionOutcome, 1)


def test_shared_ends_are_counted_once_however_many_took_part() -> None:
    coordinator = Coordinator()
    owner = coordinator.init()
    members = [coordinator.join(owner, task=task).producer for task in range(3)]
    for _ in range(2):
        coordinator.end_batch(owner, 0, *members)
    coordinator.end_batch(owner, 1)
    coordinator.join(owner, 2)
    coordinator.end_batch(owner, 2, committed=False)
    coordinator.join(owner, 2)
    coordinator.pass_time(61)
    coordinator.join(owner, 2)
    coordinator.init()
    assert coordinator.ended == {
        TransactionOutcome.COMMITTED: 2,
        TransactionOutcome.ABORTED: 1,
        TransactionOutcome.TIMED_OUT: 1,
        TransactionOutcome.FENCED: 1,
    }


def test_a_standing_says_what_is_open_and_since_when() -> None:
    coordinator = Coordinator()
    assert coordinator.machine.standing() == ({}, None)
    producer = coordinator.init()
    assert coordinator.machine.standing() == ({"Empty": 1}, None)
    coordinator.pass_time(2)
    coordinator.add(producer)
    coordinator.ask(InitProducer("another", 60_000))
    assert coordinator.machine.standing() == ({"Ongoing": 1, "Empty": 1}, coordinator.now_ms)
