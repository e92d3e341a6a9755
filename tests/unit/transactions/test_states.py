"""The steps from one state of a transactional id to the next."""

import pytest

from riverlog.model.ids import NO_TIMESTAMP, ProducerId
from riverlog.model.transactions import TransactionVersion
from riverlog.transactions.states import NOBODY, Transaction, TransactionState
from tests.support.transactions import P0, P1, V2, producer_of

EMPTY = Transaction(producer_of(7, 3), timeout_ms=1_000, updated_ms=5)
OPEN = EMPTY.joined([P0], V2, 10)


def test_states_have_the_names_and_numbers_of_kafka() -> None:
    titles = [state.title for state in sorted(TransactionState)]
    assert titles == [
        "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
        "PrepareEpochFence",
    ]  # fmt: skip


def test_the_first_partitions_begin_a_transaction_and_others_join_it() -> None:
    assert (OPEN.state, OPEN.started_ms, OPEN.partitions) == (TransactionState.ONGOING, 10, {P0})
    later = OPEN.joined([P1, P0], V2, 20)
    assert (later.started_ms, later.updated_ms, later.partitions) == (10, 20, {P0, P1})
    assert EMPTY.started_ms == NO_TIMESTAMP


@pytest.mark.parametrize("committed", [True, False])
def test_by_the_newer_rules_an_end_has_the_next_epoch(committed: bool) -> None:
    ended = OPEN.ended(committed=committed, version=V2, now_ms=30)
    assert (ended.producer, ended.last, ended.is_committed) == (producer_of(7, 4), producer_of(7, 3), committed)
    assert ended.state.is_ending
    done = ended.completed(40)
    assert (done.producer, done.partitions, done.is_committed) == (producer_of(7, 4), frozenset(), committed)
    assert done.state.is_ended
    assert (done.started_ms, done.updated_ms) == (10, 40)


def test_by_the_older_rules_the_epoch_stays() -> None:
    ended = OPEN.ended(committed=True, version=TransactionVersion.CLASSIC, now_ms=30)
    assert (ended.producer, ended.last) == (producer_of(7, 3), NOBODY)


def test_when_the_epochs_are_used_up_the_end_names_the_next_id() -> None:
    exhausted = Transaction(producer_of(7, 32_766), 1_000, 5).joined([P0], V2, 10)
    assert exhausted.is_exhausted
    ended = exhausted.ended(committed=True, version=V2, now_ms=30, new_id=ProducerId(8))
    assert (ended.producer, ended.successor) == (producer_of(7, 32_767), producer_of(8, 0))
    done = ended.completed(40)
    assert (done.producer, done.last, done.next_producer_id) == (producer_of(8, 0), producer_of(7, 32_766), -1)


def test_an_id_that_is_not_used_up_does_not_go_for_a_new_one() -> None:
    assert OPEN.ended(committed=True, version=V2, now_ms=30, new_id=ProducerId(8)).successor == producer_of(7, 4)


def test_without_partitions_the_end_is_complete_at_once() -> None:
    ended = EMPTY.ended(committed=False, version=V2, now_ms=30)
    assert (ended.state, ended.producer, ended.started_ms) == (
        TransactionState.COMPLETE_ABORT,
        producer_of(7, 4),
        30,
    )


def test_whoever_is_fenced_does_not_have_the_epoch_of_the_end() -> None:
    fenced = OPEN.fenced(last=NOBODY, now_ms=30)
    assert (fenced.state, fenced.producer, fenced.last) == (TransactionState.PREPARE_ABORT, producer_of(7, 4), NOBODY)
    assert not fenced.is_of(producer_of(7, 3))


def test_nobody_writes_with_the_last_epoch() -> None:
    last = Transaction(producer_of(7, 32_766), 1_000, 5).joined([P0], V2, 10).fenced(last=NOBODY, now_ms=30)
    assert last.producer == producer_of(7, 32_767)
    assert not last.is_of(last.producer)
    assert OPEN.is_of(OPEN.producer)
