"""Who may write with a transactional id: a new producer, one that goes on after an error, or one that asks again.

The epoch is what fences: whoever takes over gets a higher one, or an id that nobody had before when the epochs are used
up. A producer that says who it was gets its next epoch only if nobody has taken over since. A transaction that is still
open is aborted first, with an epoch of its own.
"""

from typing import assert_never

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_PRODUCER, NO_PRODUCER_EPOCH, ProducerEpoch, ProducerId
from riverlog.model.settings import NodeSettings
from riverlog.model.transactions import ProducerIdentity, TransactionOutcome
from riverlog.transactions.commands import InitProducer, NeedsProducerId, ProducerReply
from riverlog.transactions.decision_draft import DecisionDraft
from riverlog.transactions.shared_transactions import abort_batch
from riverlog.transactions.states import FIRST_EPOCH, NOBODY, Transaction, TransactionState


def init_producer(
    command: InitProducer, draft: DecisionDraft, settings: NodeSettings
) -> ProducerReply | NeedsProducerId:
    """Choose the producer that may write from here on. CONCURRENT_TRANSACTIONS: once the transaction has ended."""
    if not 0 < command.timeout_ms <= settings.transaction_max_timeout_ms:
        return ProducerReply(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    held = draft.find(command.transactional_id)
    if held is None:
        return _begin(command, draft)
    if held.state.is_ending:
        return ProducerReply(ErrorCode.CONCURRENT_TRANSACTIONS)
    if command.expected is not None and not _may_go_on(held, command.expected):
        return ProducerReply(ErrorCode.PRODUCER_FENCED)
    match held.state:
        case TransactionState.ONGOING:
            return _fence(command, held, draft)
        case TransactionState.EMPTY | TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT:
            return _take_over(command, held, draft)
        case TransactionState.PREPARE_COMMIT | TransactionState.PREPARE_ABORT:
            raise AssertionError("an ending transaction was answered before")
        case TransactionState.DEAD | TransactionState.PREPARE_EPOCH_FENCE:
            raise AssertionError("these states are never remembered")
        case _:
            assert_never(held.state)


def _begin(command: InitProducer, draft: DecisionDraft) -> ProducerReply | NeedsProducerId:
    """Begin with an id that nobody knows, or that was forgotten for being idle."""
    if command.new_id == NO_PRODUCER:
        return NeedsProducerId()
    producer = ProducerIdentity(command.new_id, FIRST_EPOCH)
    draft.write(command.transactional_id, Transaction(producer, command.timeout_ms, draft.now.wall_ms))
    return ProducerReply(producer=producer)


def _may_go_on(held: Transaction, expected: ProducerIdentity) -> bool:
    """Return whether nobody has taken over from the sender. One whose transaction is open cannot have missed an answer
    before it."""
    if held.is_of(expected):
        return True
    return expected == held.last and held.state is not TransactionState.ONGOING


def _fence(command: InitProducer, held: Transaction, draft: DecisionDraft) -> ProducerReply | NeedsProducerId:
    """Abort what is open, so that the sender can take over; what it had itself it may go on from."""
    draft.count(TransactionOutcome.FENCED)
    last = held.producer if command.expected is not None else NOBODY
    fenced = held.fenced(last=last, now_ms=draft.now.wall_ms)
    if not held.is_shared_now:
        draft.write(command.transactional_id, fenced)
        return ProducerReply(ErrorCode.CONCURRENT_TRANSACTIONS)
    abort_batch(command.transactional_id, held, draft, fenced=fenced)
    aborted = draft.find(command.transactional_id)
    assert aborted is not None
    if aborted.state.is_ending:
        return ProducerReply(ErrorCode.CONCURRENT_TRANSACTIONS)
    return _take_over(command, aborted, draft)  # no member has written anything


def _take_over(command: InitProducer, held: Transaction, draft: DecisionDraft) -> ProducerReply | NeedsProducerId:
    if command.expected not in (None, held.producer) and held.is_of(held.producer):  # the answer was lost
        producer, last = held.producer, held.last
    elif held.is_exhausted and command.new_id == NO_PRODUCER:
        return NeedsProducerId()
    else:
        producer = _next(held, command.new_id)
        last = ProducerIdentity(
            held.producer.id, held.producer.epoch if command.expected is not None else NO_PRODUCER_EPOCH
        )
    renewed = held.renewed(producer, last=last, timeout_ms=command.timeout_ms, now_ms=draft.now.wall_ms)
    draft.write(command.transactional_id, renewed)
    return ProducerReply(producer=producer)


def _next(held: Transaction, new_id: ProducerId) -> ProducerIdentity:
    if held.is_exhausted:
        return ProducerIdentity(new_id, FIRST_EPOCH)
    return ProducerIdentity(held.producer.id, ProducerEpoch(held.producer.epoch + 1))
