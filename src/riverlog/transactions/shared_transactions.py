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
from riverlog.model.ids import NO_PRODUCER
from riverlog.model.limits import MEMBERS_PER_BATCH_MAX
from riverlog.model.transactions import Outcome, Producer, TransactionVersion
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
from riverlog.transactions.incarnations import Shared
from riverlog.transactions.members import Member, MemberState
from riverlog.transactions.records import MemberName
from riverlog.transactions.states import FIRST_EPOCH, Transaction, TransactionState
from riverlog.transactions.turn import Turn

_NOTHING: Final = Shared()
_JOINED: Final = MemberState.JOINED  # looking it up takes as long as the rest of a loop over members
_FREE: Final = MemberState.FREE
_ENDING: Final = {
    TransactionState.COMPLETE_COMMIT: TransactionState.PREPARE_COMMIT,
    TransactionState.COMPLETE_ABORT: TransactionState.PREPARE_ABORT,
}


def join_batch(command: JoinBatch, turn: Turn) -> ProducerReply | NeedsProducerId:
    """Say who an attempt of a task writes as; nobody, without an error, where the batch is committed already.

    CONCURRENT_TRANSACTIONS: once the batch before has ended.
    """
    held = turn.find(command.transactional_id)
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
    members = turn.members(command.transactional_id)
    if not _have_joined(command.beside, members):
        return ProducerReply(ErrorCode.TRANSACTION_ABORTABLE)
    free = None
    for member in members:  # of which there may be many, for each of as many: this loop is to be quick
        if member.state is _JOINED:
            if member.task == command.task and member.attempt == command.attempt:
                return ProducerReply(producer=member.producer)
        elif free is None and member.state is _FREE and not member.is_spent:
            free = member
    return _joined(command, held, members, free, turn)


def end_batch(command: EndBatch, turn: Turn) -> ProducerReply:
    """Decide a batch, or say how it was decided. TRANSACTION_ABORTABLE: what the members wrote is gone, or will be."""
    held = turn.find(command.transactional_id)
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
        return _end_unopened(command, held, shared, turn)
    if not command.committed:
        turn.count(Outcome.ABORTED)
        abort_batch(command.transactional_id, held, turn)
        return ProducerReply()
    members = turn.members(command.transactional_id)
    if not _have_joined(command.members, members):
        return ProducerReply(ErrorCode.TRANSACTION_ABORTABLE)
    if not _are_of_different_tasks(command.members, members):
        return ProducerReply(ErrorCode.INVALID_REQUEST)
    ended = _owner(held, TransactionState.COMPLETE_COMMIT, shared.committed(batch, command.marker), turn)
    _decide(command.transactional_id, ended, command.members, turn)
    turn.count(Outcome.COMMITTED)
    return ProducerReply()


def leave_batch(command: EndTransaction, member: Member, turn: Turn) -> ProducerReply:
    """Take back what a member wrote that gives up; the batch goes on without it. Only the owner commits."""
    code = _refusal_of_member(command.producer, member)
    if code is ErrorCode.NONE and command.committed:
        code = ErrorCode.INVALID_TXN_STATE
    if code is not ErrorCode.NONE:
        return ProducerReply(code)
    left = member.ended(committed=False)
    turn.write_member(MemberName(command.transactional_id, member.producer.id), left)
    return ProducerReply(producer=left.producer)


def abort_batch(transactional_id: str, held: Transaction, turn: Turn, *, fenced: Transaction | None = None) -> None:
    """Abort the open batch; `fenced` is its owner's id in another's hands, where somebody takes over."""
    assert held.shared is not None
    ended = fenced or _owner(held, TransactionState.COMPLETE_ABORT, held.shared, turn)
    _decide(transactional_id, ended._replace(shared=held.shared.aborted()), (), turn)


def complete_member(name: MemberName, producer: Producer, turn: Turn) -> bool:
    """Note that all markers of a member are written; tell whether the whole batch has ended with it."""
    member = turn.find_member(name)
    if member is None or not member.state.is_ending or member.producer != producer:
        return False
    turn.write_member(name, member.completed())
    held = turn.find(name.transactional_id)
    assert held is not None
    if not held.state.is_ending:
        return False  # it had left
    # Markers are sent in the order of the pool, so that whoever is still ending stands at its end.
    if any(each.state.is_ending for each in reversed(turn.members(name.transactional_id))):
        return False
    turn.write(name.transactional_id, held.completed(turn.now.wall_ms))
    return True


def add_to_member(command: AddPartitions, member: Member, turn: Turn) -> PartitionsReply:
    """Take partitions into what a member writes."""
    code = _refusal_of_member(command.producer, member)
    if code is ErrorCode.NONE and not member.partitions.issuperset(command.partitions):
        turn.write_member(MemberName(command.transactional_id, member.producer.id), member.added(command.partitions))
    return PartitionsReply((code,) * len(command.partitions))


def verify_member(command: VerifyPartitions, member: Member) -> PartitionsReply:
    """Say which partitions belong to what a member writes."""
    code = _refusal_of_member(command.producer, member)
    if code is not ErrorCode.NONE:
        return PartitionsReply((code,) * len(command.partitions))
    return PartitionsReply(
        tuple(
            ErrorCode.NONE if each in member.partitions else ErrorCode.TRANSACTION_ABORTABLE
            for each in command.partitions
        )
    )


def describe_batches(command: DescribeBatches, held: Transaction | None) -> BatchesReply:
    """Say how far an incarnation has come."""
    if held is None:
        return BatchesReply(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    shared = held.shared or _NOTHING
    known = shared.find(command.incarnation)
    is_open = shared.open_batch == (known.name, known.opened)
    return BatchesReply(ErrorCode.NONE, known.committed, known.marker, known.opened if is_open else None)


def _refusal_of_owner(owner: Producer, held: Transaction | None) -> ErrorCode:
    if held is None or owner.id != held.producer.id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return ErrorCode.NONE if held.is_of(owner) else ErrorCode.PRODUCER_FENCED


def _refusal_of_member(producer: Producer, member: Member) -> ErrorCode:
    """Say whether a member may write: not with another epoch, and not before it has joined."""
    if producer.epoch != member.producer.epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE if member.state is MemberState.JOINED else ErrorCode.INVALID_TXN_STATE


def _joined(
    command: JoinBatch, held: Transaction, members: Collection[Member], free: Member | None, turn: Turn
) -> ProducerReply | NeedsProducerId:
    """Give the attempt a free producer of the pool, or one more; the first to join opens the batch."""
    if free is None:
        if sum(not each.is_spent for each in members) >= MEMBERS_PER_BATCH_MAX:
            return ProducerReply(ErrorCode.POLICY_VIOLATION)
        if command.new_id == NO_PRODUCER:
            return NeedsProducerId()
        joined = Member(Producer(command.new_id, FIRST_EPOCH), command.batch, command.task, command.attempt)
    else:
        joined = free.joined(command.batch, command.task, command.attempt)
    if not held.is_shared_now:
        _open(command, held, members, turn)
    turn.write_member(MemberName(command.transactional_id, joined.producer.id), joined)
    return ProducerReply(producer=joined.producer)


def _open(command: JoinBatch, held: Transaction, members: Collection[Member], turn: Turn) -> None:
    """Begin the batch, and let go of ids that nobody can use any more."""
    shared = (held.shared or _NOTHING).opened(command.batch)
    opened = _owner(held, TransactionState.ONGOING, shared, turn)
    turn.write(command.transactional_id, opened._replace(started_ms=turn.now.wall_ms))
    for member in members:
        if member.is_spent:
            turn.write_member(MemberName(command.transactional_id, member.producer.id), None)


def _end_unopened(command: EndBatch, held: Transaction, shared: Shared, turn: Turn) -> ProducerReply:
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
    turn.write(command.transactional_id, _owner(held, TransactionState.COMPLETE_COMMIT, committed, turn))
    turn.count(Outcome.COMMITTED)
    return ProducerReply()


def _owner(held: Transaction, state: TransactionState, shared: Shared, turn: Turn) -> Transaction:
    return held._replace(
        state=state,
        updated_ms=turn.now.wall_ms,
        version=TransactionVersion.EPOCH_PER_TRANSACTION,
        shared=shared,
    )


def _decide(transactional_id: str, ended: Transaction, listed: Collection[Producer], turn: Turn) -> None:
    """Write the end of every member and of the whole: one batch of the log, so that a crash leaves all or nothing."""
    committing = frozenset(listed)
    decided = [
        member.ended(committed=member.producer in committing)
        for member in turn.members(transactional_id)
        if member.state is MemberState.JOINED
    ]
    is_ending = any(member.state.is_ending for member in decided)
    turn.write(transactional_id, ended._replace(state=_ENDING[ended.state]) if is_ending else ended)
    for member in decided:
        turn.write_member(MemberName(transactional_id, member.producer.id), member)


def _have_joined(producers: Collection[Producer], members: Collection[Member]) -> bool:
    if not producers:
        return True
    joined = {member.producer for member in members if member.state is _JOINED}
    return joined.issuperset(producers)


def _are_of_different_tasks(producers: Collection[Producer], members: Collection[Member]) -> bool:
    """Tell whether no task is counted twice: of several attempts one is the right one."""
    wanted = set(producers)
    tasks = [member.task for member in members if member.producer in wanted]
    return len(tasks) == len(set(tasks)) and len(wanted) == len(producers)
