"""Transactions of many writers: members join a batch, its owner decides about all of them at once.

The owner is the producer of the transactional id; a new one fences it and aborts what it left open, and so does time,
which fences nobody. Members whom the decision does not list are aborted by it; one that knows before that it failed may
leave, and is aborted at once. A batch that is committed stays so:
whoever joins it has nothing to write, and to commit it again changes nothing. One that was aborted may be begun again,
and comes before any other of its incarnation; its members of before are not among those that can be listed then.
"""

from collections.abc import Collection
from typing import Final

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_PRODUCER, TopicPartition
from riverlog.model.limits import MEMBERS_PER_BATCH_MAX
from riverlog.model.transactions import ProducerIdentity, TransactionOutcome, TransactionVersion
from riverlog.transactions.commands import (
    AddPartitions,
    BatchesReply,
    DescribeBatches,
    EndBatch,
    EndTransaction,
    JoinBatch,
    NeedsProducerId,
    PartitionsReply,
    ProducerReply,
    VerifyPartitions,
)
from riverlog.transactions.decision_draft import DecisionDraft
from riverlog.transactions.incarnations import Shared
from riverlog.transactions.members import SharedMember, SharedMemberState
from riverlog.transactions.records import MemberName
from riverlog.transactions.states import FIRST_EPOCH, Transaction, TransactionState

_NOTHING: Final = Shared()
_JOINED: Final = SharedMemberState.JOINED  # looking it up takes as long as the rest of a loop over members
_FREE: Final = SharedMemberState.FREE
_ENDING: Final = {
    TransactionState.COMPLETE_COMMIT: TransactionState.PREPARE_COMMIT,
    TransactionState.COMPLETE_ABORT: TransactionState.PREPARE_ABORT,
}


def join_batch(command: JoinBatch, draft: DecisionDraft) -> ProducerReply | NeedsProducerId:
    """Choose the producer that an attempt of a task writes as; NOBODY, with no error, if the batch is committed.

    CONCURRENT_TRANSACTIONS: once the batch before has ended.
    """
    held = draft.find(command.transactional_id)
    code = _refusal_of_owner(command.owner, held)
    if code is not ErrorCode.NONE:
        return ProducerReply(code)
    assert held is not None
    shared, batch = held.shared or _NOTHING, command.batch
    known = shared.find(batch.incarnation)
    if batch.number <= known.committed:
        return ProducerReply()
    if held.state.is_ending:
        return ProducerReply(ErrorCode.CONCURRENT_TRANSACTIONS)
    if held.state is TransactionState.ONGOING and shared.open_batch != batch:
        return ProducerReply(ErrorCode.INVALID_TXN_STATE)
    if not known.may_follow(batch.number):
        return ProducerReply(ErrorCode.INVALID_TXN_STATE)
    members = draft.members(command.transactional_id)
    if not _have_joined(command.beside, members):
        return ProducerReply(ErrorCode.TRANSACTION_ABORTABLE)
    free = None
    for member in members:  # of which there may be many, for each of as many: this loop is to be quick
        if member.state is _JOINED:
            if member.task == command.task and member.attempt == command.attempt:
                return ProducerReply(producer=member.producer)
        elif free is None and member.state is _FREE and not member.is_spent:
            free = member
    return _joined(command, held, members, free, draft)


def end_batch(command: EndBatch, draft: DecisionDraft) -> ProducerReply:
    """Decide a batch, or say how it was decided. TRANSACTION_ABORTABLE: what the members wrote is gone, or will be."""
    held = draft.find(command.transactional_id)
    code = _refusal_of_owner(command.owner, held)
    if code is not ErrorCode.NONE:
        return ProducerReply(code)
    assert held is not None
    shared, batch = held.shared or _NOTHING, command.batch
    known = shared.find(batch.incarnation)
    if batch.number <= known.committed:
        return ProducerReply(ErrorCode.NONE if command.committed else ErrorCode.INVALID_TXN_STATE)
    if not known.may_follow(batch.number):
        return ProducerReply(ErrorCode.INVALID_TXN_STATE)
    if shared.open_batch != batch:
        return _end_unopened(command, held, shared, draft)
    if not command.committed:
        draft.count(TransactionOutcome.ABORTED)
        abort_batch(command.transactional_id, held, draft)
        return ProducerReply()
    members = draft.members(command.transactional_id)
    if not _have_joined(command.members, members):
        return ProducerReply(ErrorCode.TRANSACTION_ABORTABLE)
    if not _are_of_different_tasks(command.members, members):
        return ProducerReply(ErrorCode.INVALID_REQUEST)
    ended = _owner(held, TransactionState.COMPLETE_COMMIT, shared.committed(batch, command.marker), draft)
    _decide(command.transactional_id, ended, command.members, draft)
    draft.count(TransactionOutcome.COMMITTED)
    return ProducerReply()


def leave_batch(command: EndTransaction, member: SharedMember, draft: DecisionDraft) -> ProducerReply:
    """Take back what a member wrote that gives up; the batch goes on without it. Only the owner commits."""
    code = _refusal_of_member(command.producer, member)
    if code is ErrorCode.NONE and command.committed:
        code = ErrorCode.INVALID_TXN_STATE
    if code is not ErrorCode.NONE:
        return ProducerReply(code)
    left = member.ended(committed=False)
    draft.write_member(MemberName(command.transactional_id, member.producer.id), left)
    return ProducerReply(producer=left.producer)


def abort_batch(
    transactional_id: str, held: Transaction, draft: DecisionDraft, *, fenced: Transaction | None = None
) -> None:
    """Abort the open batch; `fenced` is its owner's id in another's hands, where somebody takes over."""
    assert held.shared is not None
    ended = fenced or _owner(held, TransactionState.COMPLETE_ABORT, held.shared, draft)
    _decide(transactional_id, ended._replace(shared=held.shared.aborted()), (), draft)


def complete_member(name: MemberName, producer: ProducerIdentity, draft: DecisionDraft) -> bool:
    """Note that all markers of a member are written; tell whether the whole batch has ended with it."""
    member = draft.find_member(name)
    if member is None or not member.state.is_ending or member.producer != producer:
        return False
    draft.write_member(name, member.completed())
    held = draft.find(name.transactional_id)
    assert held is not None
    if not held.state.is_ending:
        return False  # it had left
    # Markers are sent in the order of the pool, so that whoever is still ending stands at its end.
    if any(each.state.is_ending for each in reversed(draft.members(name.transactional_id))):
        return False
    draft.write(name.transactional_id, held.completed(draft.now.wall_ms))
    return True


def add_to_member(command: AddPartitions, member: SharedMember, draft: DecisionDraft) -> PartitionsReply:
    """Take partitions into what a member writes."""
    code = _refusal_of_member(command.producer, member)
    if code is ErrorCode.NONE and not member.partitions.issuperset(command.partitions):
        draft.write_member(MemberName(command.transactional_id, member.producer.id), member.added(command.partitions))
    return PartitionsReply((code,) * len(command.partitions))


def verify_member(command: VerifyPartitions, member: SharedMember) -> PartitionsReply:
    """Return which partitions belong to what a member writes."""
    return verified(command, _refusal_of_member(command.producer, member), member.partitions)


def verified(command: VerifyPartitions, code: ErrorCode, partitions: Collection[TopicPartition]) -> PartitionsReply:
    """Return for each partition whether it is among these, or else the code by which all are refused."""
    if code is not ErrorCode.NONE:
        return PartitionsReply((code,) * len(command.partitions))
    unknown = ErrorCode.TRANSACTION_ABORTABLE
    return PartitionsReply(tuple(ErrorCode.NONE if each in partitions else unknown for each in command.partitions))


def describe_batches(command: DescribeBatches, held: Transaction | None) -> BatchesReply:
    """Return how far an incarnation has come."""
    if held is None:
        return BatchesReply(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    shared = held.shared or _NOTHING
    known = shared.find(command.incarnation)
    is_open = shared.open_batch == (known.name, known.opened)
    return BatchesReply(ErrorCode.NONE, known.committed, known.marker, known.opened if is_open else None)


def _refusal_of_owner(owner: ProducerIdentity, held: Transaction | None) -> ErrorCode:
    if held is None or owner.id != held.producer.id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return ErrorCode.NONE if held.is_of(owner) else ErrorCode.PRODUCER_FENCED


def _refusal_of_member(producer: ProducerIdentity, member: SharedMember) -> ErrorCode:
    """Return whether a member may write: not with another epoch, and not before it has joined."""
    if producer.epoch != member.producer.epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE if member.state is SharedMemberState.JOINED else ErrorCode.INVALID_TXN_STATE


def _joined(
    command: JoinBatch,
    held: Transaction,
    members: Collection[SharedMember],
    free: SharedMember | None,
    draft: DecisionDraft,
) -> ProducerReply | NeedsProducerId:
    """Assign the attempt a free producer of the pool, or a new one; the first to join opens the batch."""
    if free is None:
        if sum(not each.is_spent for each in members) >= MEMBERS_PER_BATCH_MAX:
            return ProducerReply(ErrorCode.POLICY_VIOLATION)
        if command.new_id == NO_PRODUCER:
            return NeedsProducerId()
        joined = SharedMember(
            ProducerIdentity(command.new_id, FIRST_EPOCH), command.batch, command.task, command.attempt
        )
    else:
        joined = free.joined(command.batch, command.task, command.attempt)
    if not held.is_shared_now:
        _open(command, held, members, draft)
    draft.write_member(MemberName(command.transactional_id, joined.producer.id), joined)
    return ProducerReply(producer=joined.producer)


def _open(command: JoinBatch, held: Transaction, members: Collection[SharedMember], draft: DecisionDraft) -> None:
    """Begin the batch, and let go of ids that nobody can use any more."""
    shared = (held.shared or _NOTHING).opened(command.batch)
    opened = _owner(held, TransactionState.ONGOING, shared, draft)
    draft.write(command.transactional_id, opened._replace(started_ms=draft.now.wall_ms))
    for member in members:
        if member.is_spent:
            draft.write_member(MemberName(command.transactional_id, member.producer.id), None)


def _end_unopened(command: EndBatch, held: Transaction, shared: Shared, draft: DecisionDraft) -> ProducerReply:
    """Decide a batch that nobody has joined, or nobody since it was aborted."""
    if held.state is TransactionState.ONGOING:
        return ProducerReply(ErrorCode.INVALID_TXN_STATE)
    if not command.committed:
        return ProducerReply()
    if command.members:
        return ProducerReply(ErrorCode.TRANSACTION_ABORTABLE)
    if held.state.is_ending:
        return ProducerReply(ErrorCode.CONCURRENT_TRANSACTIONS)
    committed = shared.committed(command.batch, command.marker)
    draft.write(command.transactional_id, _owner(held, TransactionState.COMPLETE_COMMIT, committed, draft))
    draft.count(TransactionOutcome.COMMITTED)
    return ProducerReply()


def _owner(held: Transaction, state: TransactionState, shared: Shared, draft: DecisionDraft) -> Transaction:
    return held._replace(
        state=state,
        updated_ms=draft.now.wall_ms,
        version=TransactionVersion.EPOCH_PER_TRANSACTION,
        shared=shared,
    )


def _decide(
    transactional_id: str, ended: Transaction, listed: Collection[ProducerIdentity], draft: DecisionDraft
) -> None:
    """Write the end of every member and of the whole: one batch of the log, so that a crash leaves all or nothing."""
    committing = frozenset(listed)
    decided = [
        member.ended(committed=member.producer in committing)
        for member in draft.members(transactional_id)
        if member.state is SharedMemberState.JOINED
    ]
    is_ending = any(member.state.is_ending for member in decided)
    draft.write(transactional_id, ended._replace(state=_ENDING[ended.state]) if is_ending else ended)
    for member in decided:
        draft.write_member(MemberName(transactional_id, member.producer.id), member)


def _have_joined(producers: Collection[ProducerIdentity], members: Collection[SharedMember]) -> bool:
    if not producers:
        return True
    joined = {member.producer for member in members if member.state is _JOINED}
    return joined.issuperset(producers)


def _are_of_different_tasks(producers: Collection[ProducerIdentity], members: Collection[SharedMember]) -> bool:
    """Return whether no task is counted twice: of several attempts one is the right one."""
    wanted = set(producers)
    tasks = [member.task for member in members if member.producer in wanted]
    return len(tasks) == len(set(tasks)) and len(wanted) == len(producers)
