"""The transactions machine: commands in, facts, replies and markers out; one per partition of `__transaction_state`.

What it remembers are transactional ids, which records alone change. Who waits and when time runs out is `live`: it
begins with the first command after a replay, when the markers of whatever was ending are sent once more.
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final, assert_never

from riverlog.model.errors import ErrorCode
from riverlog.model.limits import TRANSACTIONAL_IDS_EXPIRED_PER_TURN_MAX
from riverlog.model.machine import Decision, Instant, Moment, Ticket
from riverlog.model.settings import NodeSettings
from riverlog.transactions.commands import (
    AddPartitions,
    ClientCommand,
    DescribeTransactions,
    DescribeTransactionsReply,
    EndTransaction,
    InitProducer,
    ListTransactions,
    ListTransactionsReply,
    MarkersWritten,
    NeedsProducerId,
    PartitionsReply,
    ProducerReply,
    SendMarkers,
    TransactionsCommand,
    VerifyPartitions,
    Woken,
)
from riverlog.transactions.ending import end_transaction
from riverlog.transactions.live import IdsExpire, Live, TransactionEnds, WaitEnds
from riverlog.transactions.producers import init_producer
from riverlog.transactions.records import TransactionFact
from riverlog.transactions.states import NOBODY, Transaction, TransactionState
from riverlog.transactions.turn import Turn

_AT_ONCE: Final = Instant(0.0)

ClientReply = ProducerReply | NeedsProducerId | PartitionsReply


class TransactionsMachine:
    """Decides about transactional ids and their transactions."""

    def __init__(self, settings: NodeSettings) -> None:
        self.state: dict[str, Transaction] = {}
        self.live = Live()
        self._settings = settings
        self._is_awake = False

    def decide(
        self, command: TransactionsCommand, ticket: Ticket, now: Moment
    ) -> Decision[TransactionFact, SendMarkers]:
        """Say what follows from the command; of all that is remembered, change nothing."""
        turn = Turn(now, self.state)
        if not self._is_awake:
            self._is_awake = True
            self._resume(turn)
        self._decide(command, ticket, turn)
        return turn.decision()

    def apply(self, fact: TransactionFact) -> None:
        """Remember one fact."""
        if fact.transaction is None:
            self.state.pop(fact.transactional_id, None)
        else:
            self.state[fact.transactional_id] = fact.transaction

    def snapshot(self) -> Iterable[TransactionFact]:
        """Give records which make an empty machine remember what this one does."""
        return (TransactionFact(transactional_id, held) for transactional_id, held in self.state.items())

    def next_deadline(self) -> Instant | None:
        """Say when time runs out for somebody; after a replay, at once, so that nothing stays half ended."""
        return self.live.timers.next() if self._is_awake else _AT_ONCE

    def _decide(self, command: TransactionsCommand, ticket: Ticket, turn: Turn) -> None:
        match command:
            case InitProducer() | AddPartitions() | VerifyPartitions() | EndTransaction():
                self._decide_for_client(command, ticket, turn)
            case MarkersWritten():
                self._complete(command, turn)
                turn.answer(ticket, None)
            case Woken():
                self._wake(turn)
                turn.answer(ticket, None)
            case DescribeTransactions():
                found = tuple(self.state.get(each) for each in command.transactional_ids)
                turn.answer(ticket, DescribeTransactionsReply(found))
            case ListTransactions():
                turn.answer(ticket, self._list(command))
            case _:
                assert_never(command)

    def _decide_for_client(self, command: ClientCommand, ticket: Ticket, turn: Turn) -> None:
        """Answer, or keep the command until the transaction that is in its way has ended."""
        reply = self._reply(command, turn)
        if isinstance(command, VerifyPartitions) or not self._waits(command, reply, ticket, turn):
            turn.answer(ticket, reply)

    def _waits(self, command: ClientCommand, reply: ClientReply, ticket: Ticket, turn: Turn) -> bool:
        return _code(reply) is ErrorCode.CONCURRENT_TRANSACTIONS and self.live.wait(command, ticket, turn)

    def _reply(self, command: ClientCommand, turn: Turn) -> ClientReply:
        match command:
            case InitProducer():
                return init_producer(command, turn, self._settings)
            case AddPartitions():
                return self._add(command, turn)
            case VerifyPartitions():
                return _verify(command, turn)
            case EndTransaction():
                return end_transaction(command, turn)
            case _:
                assert_never(command)

    def _add(self, command: AddPartitions, turn: Turn) -> PartitionsReply:
        held = turn.find(command.transactional_id)
        code = _refusal(command, held)
        if code is ErrorCode.NONE:
            assert held is not None
            is_open = held.state is TransactionState.ONGOING
            if not (is_open and held.partitions.issuperset(command.partitions)):
                turn.write(command.transactional_id, held.joined(command.partitions, command.version, turn.now.wall_ms))
            if not is_open:
                self.live.timers.set(TransactionEnds(command.transactional_id), turn.in_ms(held.timeout_ms))
        return PartitionsReply((code,) * len(command.partitions))

    def _complete(self, command: MarkersWritten, turn: Turn) -> None:
        """Note the end, and let those go on who waited for it. What was told before may be told again."""
        held = turn.find(command.transactional_id)
        if held is None or not held.state.is_ending or held.producer != command.producer:
            return
        turn.write(command.transactional_id, held.completed(turn.now.wall_ms))
        for waiting in self.live.release(command.transactional_id):
            self._decide_for_client(waiting.command, waiting.ticket, turn)

    def _resume(self, turn: Turn) -> None:
        """Go on after a replay: time runs for open transactions, and the ends of others are told once more."""
        for transactional_id, held in self.state.items():
            if held.state.is_ending:
                turn.send_markers(transactional_id, held)
            elif held.state is TransactionState.ONGOING:
                left_ms = held.started_ms + held.timeout_ms - turn.now.wall_ms
                deadline = turn.in_ms(min(max(left_ms, 0), held.timeout_ms))
                self.live.timers.set(TransactionEnds(transactional_id), deadline)
        self._look_for_idle_ids_later(turn)

    def _wake(self, turn: Turn) -> None:
        while (deadline := self.live.timers.pop(turn.now.instant)) is not None:
            match deadline:
                case TransactionEnds():
                    held = turn.find(deadline.transactional_id)
                    if held is not None and held.state is TransactionState.ONGOING:
                        fenced = held.fenced(last=NOBODY, now_ms=turn.now.wall_ms)
                        turn.write(deadline.transactional_id, fenced)
                case WaitEnds():
                    for waiting in self.live.release(deadline.transactional_id):
                        turn.answer(waiting.ticket, refused(waiting.command, ErrorCode.CONCURRENT_TRANSACTIONS))
                case IdsExpire():
                    self._expire(turn)
                case _:
                    assert_never(deadline)

    def _expire(self, turn: Turn) -> None:
        """Forget ids that were idle for too long; of many a part at a time, so that nobody waits long."""
        ids = sorted(self.state)
        expired_ms = turn.now.wall_ms - self._settings.transactional_id_expiration_ms
        start = bisect_left(ids, self.live.expiry_goes_on_at)
        stop = start + TRANSACTIONAL_IDS_EXPIRED_PER_TURN_MAX
        for transactional_id in ids[start:stop]:
            held = turn.find(transactional_id)
            is_idle = held is not None and (held.state is TransactionState.EMPTY or held.state.is_ended)
            if is_idle and held is not None and held.updated_ms <= expired_ms:
                turn.write(transactional_id, None)
        if stop < len(ids):
            self.live.expiry_goes_on_at = ids[stop]
            self.live.timers.set(IdsExpire(), turn.in_ms(1))
        else:
            self.live.expiry_goes_on_at = ""
            self._look_for_idle_ids_later(turn)

    def _look_for_idle_ids_later(self, turn: Turn) -> None:
        interval_ms = self._settings.transaction_remove_expired_transaction_cleanup_interval_ms
        self.live.timers.set(IdsExpire(), turn.in_ms(interval_ms))

    def _list(self, command: ListTransactions) -> ListTransactionsReply:
        return ListTransactionsReply(
            tuple(
                (transactional_id, held)
                for transactional_id, held in sorted(self.state.items())
                if (not command.states or held.state in command.states)
                and (not command.producer_ids or held.producer.id in command.producer_ids)
                and (command.started_before_ms < 0 or held.started_ms < command.started_before_ms)
            )
        )


def refused(command: ClientCommand, code: ErrorCode) -> ProducerReply | PartitionsReply:
    """Give the reply that says no to a command."""
    match command:
        case AddPartitions() | VerifyPartitions():
            return PartitionsReply((code,) * len(command.partitions))
        case InitProducer() | EndTransaction():
            return ProducerReply(code)
        case _:
            assert_never(command)


def _verify(command: VerifyPartitions, turn: Turn) -> PartitionsReply:
    held = turn.find(command.transactional_id)
    code = _refusal(command, held)
    if code is not ErrorCode.NONE:
        return PartitionsReply((code,) * len(command.partitions))
    partitions = held.partitions if held is not None else frozenset()
    return PartitionsReply(
        tuple(ErrorCode.NONE if each in partitions else ErrorCode.TRANSACTION_ABORTABLE for each in command.partitions)
    )


def _refusal(command: AddPartitions | VerifyPartitions, held: Transaction | None) -> ErrorCode:
    """Say whether the producer may write now. While a transaction ends, its successor may not be known yet."""
    if held is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if held.state.is_ending:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if command.producer.id != held.producer.id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return ErrorCode.NONE if held.is_of(command.producer) else ErrorCode.PRODUCER_FENCED


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
