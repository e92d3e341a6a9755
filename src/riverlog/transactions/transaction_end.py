"""Which end of a transaction is accepted, which is a repetition, and which comes too late.

By the older rules producer and state alone tell; an end that was delayed on its way can decide the transaction after
the one that it was meant for. By the rules of version 2 each end changes the epoch, so the epoch tells what an end was
meant for: the sender's current one begins another end, the one before it repeats the last.
"""

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_PRODUCER
from riverlog.model.transactions import TransactionOutcome, TransactionVersion
from riverlog.transactions.commands import EndTransaction, NeedsProducerId, ProducerReply
from riverlog.transactions.decision_draft import DecisionDraft
from riverlog.transactions.states import Transaction, TransactionState


def end_transaction(command: EndTransaction, draft: DecisionDraft) -> ProducerReply | NeedsProducerId:
    """Decide a transaction, or say how it was decided. CONCURRENT_TRANSACTIONS: its markers are not all written yet."""
    held = draft.find(command.transactional_id)
    if held is None:
        return ProducerReply(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    code = _refusal(command, held)
    if code is not None:
        return ProducerReply(code, held.producer) if code is ErrorCode.NONE else ProducerReply(code)
    bumps = command.version >= TransactionVersion.EPOCH_PER_TRANSACTION
    if bumps and held.is_exhausted and command.new_id == NO_PRODUCER:
        return NeedsProducerId()
    ended = held.ended(
        committed=command.committed, version=command.version, now_ms=draft.now.wall_ms, new_id=command.new_id
    )
    draft.write(command.transactional_id, ended)
    if held.state is TransactionState.ONGOING:
        draft.count(TransactionOutcome.COMMITTED if command.committed else TransactionOutcome.ABORTED)
    return ProducerReply(producer=ended.successor)


def _refusal(command: EndTransaction, held: Transaction) -> ErrorCode | None:
    """Return why nothing is to be decided, NONE if it has been; None if it is."""
    is_by_epoch = command.version >= TransactionVersion.EPOCH_PER_TRANSACTION
    is_repeated = is_by_epoch and (held.state.is_ending or held.state.is_ended) and command.producer == held.last
    if command.producer.id != held.producer.id and not is_repeated:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if not held.is_of(command.producer) and not is_repeated:
        return ErrorCode.PRODUCER_FENCED
    if held.state is TransactionState.ONGOING:
        return ErrorCode.INVALID_TXN_STATE if held.is_shared_now else None
    if is_by_epoch and not is_repeated:
        return _refusal_of_nothing(command, held)
    if held.state is TransactionState.EMPTY or command.committed != held.is_committed:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.CONCURRENT_TRANSACTIONS if held.state.is_ending else ErrorCode.NONE


def _refusal_of_nothing(command: EndTransaction, held: Transaction) -> ErrorCode | None:
    """A transaction without partitions may be aborted: the sender cannot know whether its first write got through."""
    if held.state.is_ending:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.INVALID_TXN_STATE if command.committed else None
