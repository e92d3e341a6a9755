"""The transactions machine: commands in, facts, replies and markers out; one per partition of `__transaction_state`.

What it remembers are transactional ids, which records alone change. Who waits and when time runs out is `live`: it
begins with the first command after a replay, when the markers of whatever was ending are sent once more.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, assert_never

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerId
from riverlog.model.machine import Decision, Instant, Moment, Ticket
from riverlog.model.settings import NodeSettings
from riverlog.model.transactions import TransactionOutcome
from riverlog.transactions.commands import (
    AddPartitions,
    ClientCommand,
    DescribeBatches,
    DescribeTransactions,
    Effect,
    EndBatch,
    EndTransaction,
    InitProducer,
    JoinBatch,
    ListTransactions,
    MarkersWritten,
    NeedsProducerId,
    PartitionsReply,
    ProducerReply,
    TransactionsCommand,
    TransactionTimerDue,
    VerifyPartitions,
)
from riverlog.transactions.decision_draft import DecisionDraft
from riverlog.transactions.limits import (
    TRANSACTION_ABORT_RETRY_MS,
    TRANSACTIONAL_FACTS_FORGOTTEN_PER_TURN_MAX,
    TRANSACTIONAL_ID_DONE_MS,
    TRANSACTIONAL_IDS_EXPIRED_PER_TURN_MAX,
)
from riverlog.transactions.live import IdsExpire, TransactionEnds, WaitEnds, WaitingCommands
from riverlog.transactions.members import SharedMember
from riverlog.transactions.producers import init_producer
from riverlog.transactions.records import MemberFact, MemberName, StateFact, TransactionFact
from riverlog.transactions.shared_transactions import (
    abort_batch,
    add_to_member,
    complete_member,
    describe_batches,
    end_batch,
    join_batch,
    leave_batch,
    verified,
    verify_member,
)
from riverlog.transactions.states import NOBODY, Transaction, TransactionState
from riverlog.transactions.transaction_end import end_transaction

_AT_ONCE: Final = Instant(0.0)

ClientReply = ProducerReply | NeedsProducerId | PartitionsReply


class TransactionsMachine:
    """Decides about transactional ids and their transactions."""

    def __init__(self, settings: NodeSettings) -> None:
        self.state: dict[str, Transaction] = {}
        self.pools: dict[str, dict[ProducerId, SharedMember]] = {}
        """The members of transactional ids that have some."""
        self.live = WaitingCommands()
        self._settings = settings
        self._is_awake = False

    def decide(self, command: TransactionsCommand, ticket: Ticket, now: Moment) -> Decision[StateFact, Effect]:
        """Name what follows from the command; of all that is remembered, change nothing."""
        draft = DecisionDraft(now, self.state, self.pools)
        if not self._is_awake:
            self._is_awake = True
            self._resume(draft)
        self._decide(command, ticket, draft)
        return draft.decision()

    def apply(self, fact: StateFact) -> None:
        """Remember one fact."""
        match fact:
            case TransactionFact(transactional_id, None):
                self.state.pop(transactional_id, None)
            case TransactionFact(transactional_id, held) if held is not None:
                self.state[transactional_id] = held
            case MemberFact(name, None):
                pool = self.pools.get(name.transactional_id, {})
                pool.pop(name.producer_id, None)
                if not pool:
                    self.pools.pop(name.transactional_id, None)
            case MemberFact(name, member) if member is not None:
                self.pools.setdefault(name.transactional_id, {})[name.producer_id] = member

    def withdraw(self, facts: tuple[StateFact, ...], now: Moment) -> Decision[StateFact, Effect]:
        """Set the deadlines of the transactions that these facts are about to what is remembered of them."""
        draft = DecisionDraft(now, self.state, self.pools)
        for transactional_id in {fact.transactional_id for fact in facts if isinstance(fact, TransactionFact)}:
            held = self.state.get(transactional_id)
            if held is None or held.state is not TransactionState.ONGOING:
                self.live.timers.cancel(TransactionEnds(transactional_id))
            else:
                self._let_time_run(transactional_id, held, draft, ms_min=TRANSACTION_ABORT_RETRY_MS)
        return draft.decision()

    def snapshot(self) -> Iterable[StateFact]:
        """Return records which make an empty machine remember what this one does."""
        yield from (TransactionFact(transactional_id, held) for transactional_id, held in self.state.items())
        for transactional_id, pool in self.pools.items():
            yield from (MemberFact(MemberName(transactional_id, each), member) for each, member in pool.items())

    def next_deadline(self) -> Instant | None:
        """Return when the next timer is due; after a replay, at once, so that nothing stays half ended."""
        return self.live.timers.next() if self._is_awake else _AT_ONCE

    def standing(self) -> tuple[Mapping[str, int], int | None]:
        """Count the ids by the name of their state, and say since when the oldest open transaction has been open."""
        by_state = Counter(held.state for held in self.state.values())
        opened_ms = (held.started_ms for held in self.state.values() if held.state is TransactionState.ONGOING)
        return {state.title: count for state, count in by_state.items()}, min(opened_ms, default=None)

    def _decide(self, command: TransactionsCommand, ticket: Ticket, draft: DecisionDraft) -> None:
        match command:
            case InitProducer() | AddPartitions() | VerifyPartitions() | EndTransaction() | JoinBatch() | EndBatch():
                self._decide_for_client(command, ticket, draft)
            case MarkersWritten():
                self._complete(command, draft)
                draft.answer(ticket, None)
            case TransactionTimerDue():
                self._wake(draft)
                draft.answer(ticket, None)
            case DescribeBatches():
                draft.answer(ticket, describe_batches(command, self.state.get(command.transactional_id)))
            case DescribeTransactions():
                draft.answer(ticket, tuple(self._described(each) for each in command.transactional_ids))
            case ListTransactions():
                draft.answer(ticket, self._list(command))
            case _:
                assert_never(command)

    def _decide_for_client(self, command: ClientCommand, ticket: Ticket, draft: DecisionDraft) -> None:
        """Answer, or keep the command until the transaction that is in its way has ended."""
        reply = self._reply(command, draft)
        if isinstance(command, VerifyPartitions) or not self._waits(command, reply, ticket, draft):
            draft.answer(ticket, reply)

    def _waits(self, command: ClientCommand, reply: ClientReply, ticket: Ticket, draft: DecisionDraft) -> bool:
        return _code(reply) is ErrorCode.CONCURRENT_TRANSACTIONS and self.live.wait(command, ticket, draft)

    def _reply(self, command: ClientCommand, draft: DecisionDraft) -> ClientReply:
        match command:
            case InitProducer():
                return init_producer(command, draft, self._settings)
            case AddPartitions():
                return self._add(command, draft)
            case VerifyPartitions():
                return _verify(command, draft)
            case EndTransaction():
                return _end(command, draft)
            case JoinBatch():
                return self._join(command, draft)
            case EndBatch():
                return end_batch(command, draft)
            case _:
                assert_never(command)

    def _join(self, command: JoinBatch, draft: DecisionDraft) -> ProducerReply | NeedsProducerId:
        before = draft.find(command.transactional_id)
        reply = join_batch(command, draft)
        opened = draft.find(command.transactional_id)
        if opened is not None and opened is not before:
            self.live.timers.set(TransactionEnds(command.transactional_id), draft.in_ms(opened.timeout_ms))
        return reply

    def _add(self, command: AddPartitions, draft: DecisionDraft) -> PartitionsReply:
        member = draft.find_member(MemberName(command.transactional_id, command.producer.id))
        if member is not None:
            return add_to_member(command, member, draft)
        held = draft.find(command.transactional_id)
        code = _refusal(command, held)
        if code is ErrorCode.NONE:
            assert held is not None
            is_open = held.state is TransactionState.ONGOING
            if not (is_open and held.partitions.issuperset(command.partitions)):
                draft.write(
                    command.transactional_id, held.joined(command.partitions, command.version, draft.now.wall_ms)
                )
            if not is_open:
                self.live.timers.set(TransactionEnds(command.transactional_id), draft.in_ms(held.timeout_ms))
        return PartitionsReply((code,) * len(command.partitions))

    def _complete(self, command: MarkersWritten, draft: DecisionDraft) -> None:
        """Note the end, and let those go on who waited for it. What was told before may be told again."""
        name = MemberName(command.transactional_id, command.producer.id)
        if draft.find_member(name) is not None:
            has_ended = complete_member(name, command.producer, draft)
        else:
            has_ended = _complete_own(command, draft)
        for waiting in self.live.release(command.transactional_id) if has_ended else ():
            self._decide_for_client(waiting.command, waiting.ticket, draft)

    def _resume(self, draft: DecisionDraft) -> None:
        """Go on after a replay: time runs for open transactions, and the ends of others are told once more."""
        for transactional_id, held in self.state.items():
            if held.state.is_ending:
                draft.send_markers(transactional_id, held)
            elif held.state is TransactionState.ONGOING:
                self._let_time_run(transactional_id, held, draft)
        for transactional_id, pool in self.pools.items():
            for member in pool.values():
                if member.state.is_ending:
                    draft.send_markers_of(transactional_id, member)
        self._look_for_idle_ids_later(draft)

    def _let_time_run(self, transactional_id: str, held: Transaction, draft: DecisionDraft, *, ms_min: int = 0) -> None:
        left_ms = held.started_ms + held.timeout_ms - draft.now.wall_ms
        deadline = draft.in_ms(max(min(left_ms, held.timeout_ms), ms_min))
        self.live.timers.set(TransactionEnds(transactional_id), deadline)

    def _wake(self, draft: DecisionDraft) -> None:
        # What is written stands in one batch, which has to fit, and transactions may be large: one at a time.
        while not draft.facts and (deadline := self.live.timers.pop(draft.now.instant)) is not None:
            match deadline:
                case TransactionEnds():
                    _abort(deadline.transactional_id, draft)
                case WaitEnds():
                    for waiting in self.live.release(deadline.transactional_id):
                        draft.answer(waiting.ticket, refused(waiting.command, ErrorCode.CONCURRENT_TRANSACTIONS))
                case IdsExpire():
                    self._expire(draft)
                case _:
                    assert_never(deadline)

    def _expire(self, draft: DecisionDraft) -> None:
        """Forget ids that were idle for too long; of many a part at a time, so that nobody waits long."""
        ids = sorted(self.state)
        idle_ms_max = self._settings.transactional_id_expiration_ms
        start = bisect_left(ids, self.live.expiry_goes_on_at)
        stop = start + TRANSACTIONAL_IDS_EXPIRED_PER_TURN_MAX
        for position, transactional_id in enumerate(ids[start:stop], start):
            if len(draft.facts) >= TRANSACTIONAL_FACTS_FORGOTTEN_PER_TURN_MAX:
                stop = position
                break
            held = draft.find(transactional_id)
            is_idle = held is not None and (held.state is TransactionState.EMPTY or held.state.is_ended)
            if not is_idle or held is None:
                continue
            is_done = held.shared is not None and held.shared.is_done
            kept_ms = min(TRANSACTIONAL_ID_DONE_MS, idle_ms_max) if is_done else idle_ms_max
            if draft.now.wall_ms - held.updated_ms >= kept_ms:
                for member in draft.members(transactional_id):
                    draft.write_member(MemberName(transactional_id, member.producer.id), None)
                draft.write(transactional_id, None)
        if stop < len(ids):
            self.live.expiry_goes_on_at = ids[stop]
            self.live.timers.set(IdsExpire(), draft.in_ms(1))
        else:
            self.live.expiry_goes_on_at = ""
            self._look_for_idle_ids_later(draft)

    def _look_for_idle_ids_later(self, draft: DecisionDraft) -> None:
        interval_ms = self._settings.transaction_remove_expired_transaction_cleanup_interval_ms
        self.live.timers.set(IdsExpire(), draft.in_ms(interval_ms))

    def _described(self, transactional_id: str) -> Transaction | None:
        """Return a transaction with all of its partitions, those of members too."""
        held = self.state.get(transactional_id)
        pool = self.pools.get(transactional_id)
        if held is None or pool is None:
            return held
        return held._replace(partitions=held.partitions.union(*(member.partitions for member in pool.values())))

    def _list(self, command: ListTransactions) -> tuple[tuple[str, Transaction], ...]:
        return tuple(
            (transactional_id, held)
            for transactional_id, held in sorted(self.state.items())
            if (not command.states or held.state in command.states)
            and (not command.producer_ids or self._has_any(transactional_id, held, command.producer_ids))
            and (command.started_before_ms < 0 or held.started_ms < command.started_before_ms)
        )

    def _has_any(self, transactional_id: str, held: Transaction, producer_ids: frozenset[ProducerId]) -> bool:
        return held.producer.id in producer_ids or not producer_ids.isdisjoint(self.pools.get(transactional_id, {}))


def refused(command: ClientCommand, code: ErrorCode) -> ProducerReply | PartitionsReply:
    """Return the reply that refuses a command."""
    match command:
        case AddPartitions() | VerifyPartitions():
            return PartitionsReply((code,) * len(command.partitions))
        case InitProducer() | EndTransaction() | JoinBatch() | EndBatch():
            return ProducerReply(code)
        case _:
            assert_never(command)


def _abort(transactional_id: str, draft: DecisionDraft) -> None:
    """Abort a transaction whose time is up, with an epoch that its producer does not have.

    It may go on from there, as after a request whose answer was lost; an owner of members may begin again.
    """
    held = draft.find(transactional_id)
    if held is None or held.state is not TransactionState.ONGOING:
        return
    draft.count(TransactionOutcome.TIMED_OUT)
    if held.is_shared_now:
        abort_batch(transactional_id, held, draft)
    else:
        last = NOBODY if held.is_exhausted else held.producer
        draft.write(transactional_id, held.fenced(last=last, now_ms=draft.now.wall_ms))


def _complete_own(command: MarkersWritten, draft: DecisionDraft) -> bool:
    """Note the end of the producer's own transaction; tell whether this was news."""
    held = draft.find(command.transactional_id)
    if held is None or not held.state.is_ending or held.producer != command.producer:
        return False
    if held.shared is not None and not held.partitions:
        return False  # it ends with its members
    draft.write(command.transactional_id, held.completed(draft.now.wall_ms))
    return True


def _end(command: EndTransaction, draft: DecisionDraft) -> ProducerReply | NeedsProducerId:
    member = draft.find_member(MemberName(command.transactional_id, command.producer.id))
    return end_transaction(command, draft) if member is None else leave_batch(command, member, draft)


def _verify(command: VerifyPartitions, draft: DecisionDraft) -> PartitionsReply:
    member = draft.find_member(MemberName(command.transactional_id, command.producer.id))
    if member is not None:
        return verify_member(command, member)
    held = draft.find(command.transactional_id)
    return verified(command, _refusal(command, held), frozenset() if held is None else held.partitions)


def _refusal(command: AddPartitions | VerifyPartitions, held: Transaction | None) -> ErrorCode:
    """Return whether the producer may write now. While a transaction ends, its successor may not be known yet."""
    if held is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if held.state.is_ending:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if command.producer.id != held.producer.id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if not held.is_of(command.producer):
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.INVALID_TXN_STATE if held.is_shared_now else ErrorCode.NONE


def _code(reply: ClientReply) -> ErrorCode:
    match reply:
        case ProducerReply():
            return reply.code
        case PartitionsReply():
            return next(iter(reply.codes), ErrorCode.NONE)
        case NeedsProducerId():
            return ErrorCode.NONE
        case _:
            assert_never(reply)
