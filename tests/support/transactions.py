"""A transactions machine with its driver taken away: commands in, answers by ticket, time by hand."""

from collections import Counter
from dataclasses import replace
from itertools import count
from typing import Any

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.machine import Instant, Moment, Ticket
from riverlog.model.settings import NodeSettings
from riverlog.model.transactions import ProducerIdentity, TransactionOutcome, TransactionVersion
from riverlog.records.record import read_batches
from riverlog.transactions.batches import decode_facts, encode_facts
from riverlog.transactions.commands import (
    AddPartitions,
    EndBatch,
    EndTransaction,
    InitProducer,
    JoinBatch,
    MarkersWritten,
    NeedsProducerId,
    ProducerReply,
    SendMarkers,
    TransactionsCommand,
    TransactionTimerDue,
)
from riverlog.transactions.incarnations import BatchName
from riverlog.transactions.machine import TransactionsMachine
from riverlog.transactions.records import StateFact
from riverlog.transactions.states import Transaction
from tests.support.replies import check_reply

EPOCH_MS = 1_700_000_000_000
ID = "payments"
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
V2 = TransactionVersion.EPOCH_PER_TRANSACTION


def producer_of(producer_id: int, epoch: int) -> ProducerIdentity:
    return ProducerIdentity(ProducerId(producer_id), ProducerEpoch(epoch))


class Coordinator:
    """Runs a machine as its driver would, on a log in memory and a clock that stands still unless moved."""

    def __init__(self, settings: NodeSettings | None = None) -> None:
        self.settings = settings or NodeSettings()
        self.seconds = 0.0
        self.log: list[StateFact] = []
        self.commands: dict[Ticket, TransactionsCommand] = {}
        self.answers: dict[Ticket, Any] = {}
        self.markers: list[SendMarkers] = []
        self.ended: Counter[TransactionOutcome] = Counter()
        self._tickets = count(1)
        self._ids = count(1_000)
        self.machine = TransactionsMachine(self.settings)

    @property
    def now_ms(self) -> int:
        return EPOCH_MS + int(self.seconds * 1000)

    def submit(self, command: TransactionsCommand) -> Ticket:
        """Decide and remember; the answer, if it has come, is in `answers`."""
        ticket = Ticket(next(self._tickets))
        self.commands[ticket] = command
        decision = self.machine.decide(command, ticket, Moment(Instant(self.seconds), self.now_ms))
        for fact in self._through_the_log(decision.records):
            self.machine.apply(fact)
        for reply in decision.replies:
            assert reply.ticket not in self.answers, "a ticket is answered once"
            check_reply(self.commands[reply.ticket], reply.response)
            self.answers[reply.ticket] = reply.response
        self.markers += [effect for effect in decision.effects if isinstance(effect, SendMarkers)]
        self.ended.update(effect for effect in decision.effects if isinstance(effect, TransactionOutcome))
        return ticket

    def ask(self, command: TransactionsCommand) -> Any:
        """Decide, and give the answer; a new producer id is given to whoever needs one."""
        reply = self.answers[self.submit(command)]
        if isinstance(reply, NeedsProducerId):
            assert isinstance(command, InitProducer | EndTransaction | JoinBatch)
            return self.ask(replace(command, new_id=ProducerId(next(self._ids))))
        return reply

    def init(self, expected: ProducerIdentity | None = None, *, timeout_ms: int = 60_000) -> ProducerIdentity:
        """Become the producer, perhaps after whatever is in the way has ended."""
        command = InitProducer(ID, timeout_ms, expected)
        ticket = self.submit(command)
        self.write_markers()
        reply = self.answers[ticket]
        if isinstance(reply, NeedsProducerId):
            reply = self.ask(command)
        assert isinstance(reply, ProducerReply)
        assert reply.code is ErrorCode.NONE, reply
        return reply.producer

    def add(
        self, producer: ProducerIdentity, *partitions: TopicPartition, version: TransactionVersion = V2
    ) -> ErrorCode:
        code: ErrorCode
        (code, *_) = self.ask(AddPartitions(ID, producer, partitions or (P0,), version)).codes
        return code

    def end(self, producer: ProducerIdentity, *, committed: bool = True, version: TransactionVersion = V2) -> Any:
        return self.ask(EndTransaction(ID, producer, committed, version))

    def join(
        self, owner: ProducerIdentity, number: int = 0, *, task: int = 0, attempt: int = 0, incarnation: str = "a"
    ) -> ProducerReply:
        """Make an attempt of a task join a batch."""
        reply = self.ask(JoinBatch(ID, owner, BatchName(incarnation, number), task, attempt))
        assert isinstance(reply, ProducerReply)
        return reply

    def end_batch(
        self,
        owner: ProducerIdentity,
        number: int = 0,
        *members: ProducerIdentity,
        committed: bool = True,
        incarnation: str = "a",
    ) -> ErrorCode:
        """Decide a batch."""
        code: ErrorCode = self.ask(EndBatch(ID, owner, BatchName(incarnation, number), committed, members)).code
        return code

    def write_markers(self) -> list[SendMarkers]:
        """Make all markers reach their partitions."""
        sent, self.markers = self.markers, []
        for each in sent:
            self.submit(MarkersWritten(each.transactional_id, each.producer))
        return sent

    def pass_time(self, seconds: float) -> None:
        """Pass time, and wake the machine whenever it wants."""
        until = self.seconds + seconds
        while (deadline := self.machine.next_deadline()) is not None and deadline <= until:
            self.seconds = max(self.seconds, deadline)
            self.submit(TransactionTimerDue())
        self.seconds = until

    def restart(self) -> None:
        """Lose all that is not in the log."""
        self.machine = TransactionsMachine(self.settings)
        for fact in self.log:
            self.machine.apply(fact)
        self.markers = []

    def held(self, transactional_id: str = ID) -> Transaction:
        return self.machine.state[transactional_id]

    def _through_the_log(self, facts: tuple[StateFact, ...]) -> list[StateFact]:
        read = [
            fact
            for header, records in read_batches(encode_facts(facts, self.now_ms) if facts else b"")
            for fact in decode_facts(header, records)
        ]
        assert read == list(facts)
        self.log += read
        return read
