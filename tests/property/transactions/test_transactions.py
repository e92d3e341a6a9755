"""Random producers of one transactional id, with restarts and markers that are late or lost: nobody decides twice."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerId, TopicPartition
from riverlog.model.machine import Ticket
from riverlog.model.transactions import ProducerIdentity
from riverlog.transactions.commands import (
    AddPartitions,
    EndTransaction,
    InitProducer,
    MarkersWritten,
    NeedsProducerId,
    PartitionsReply,
    ProducerReply,
    SendMarkers,
)
from riverlog.transactions.records import TransactionFact
from riverlog.transactions.states import Transaction
from tests.support.transactions import ID, V2, Coordinator, producer_of

WRITERS = st.integers(0, 2)
TIMEOUT_MS = 10_000


class Producers(RuleBasedStateMachine):
    """Three writers that take over from one another; each knows only what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.coordinator = Coordinator()
        self.known: dict[int, ProducerIdentity] = {}
        self.asked: dict[Ticket, tuple[int, InitProducer | AddPartitions | EndTransaction]] = {}
        self.newest: ProducerIdentity | None = None
        self.decided: dict[ProducerIdentity, bool] = {}
        """How the transaction of a producer ended, by the one that wrote it."""
        self.sent: list[SendMarkers] = []

    @initialize(epoch=st.sampled_from([0, 32_760, 32_765, 32_766]))
    def begin(self, epoch: int) -> None:
        """Some ids are near the end of their epochs."""
        held = Transaction(producer_of(7, epoch), TIMEOUT_MS, self.coordinator.now_ms)
        self.coordinator.log.append(TransactionFact(ID, held))
        self.coordinator.restart()

    def ask(self, writer: int, command: InitProducer | AddPartitions | EndTransaction) -> None:
        self.asked[self.coordinator.submit(command)] = (writer, command)
        self.hear()

    def hear(self) -> None:
        """Report to writers what was answered, in the order in which they asked; who needs an id gets it at once."""
        while answered := [ticket for ticket in self.asked if ticket in self.coordinator.answers]:
            writer, command = self.asked.pop(answered[0])
            reply = self.coordinator.answers[answered[0]]
            if isinstance(reply, NeedsProducerId):
                assert not isinstance(command, AddPartitions)
                new_id = ProducerId(next(self.coordinator._ids))
                self.asked[self.coordinator.submit(replace(command, new_id=new_id))] = (writer, command)
            elif isinstance(reply, ProducerReply) and reply.code is ErrorCode.NONE:
                self.told(writer, command, reply.producer)
            elif isinstance(reply, PartitionsReply) and reply.codes[0] is ErrorCode.NONE:
                assert isinstance(command, AddPartitions)
                assert command.producer == self.newest
        self.collect()

    def told(
        self, writer: int, command: InitProducer | AddPartitions | EndTransaction, producer: ProducerIdentity
    ) -> None:
        assert producer.epoch < 32_767
        if isinstance(command, EndTransaction):
            assert self.decided.setdefault(command.producer, command.committed) is command.committed
        self.known[writer] = self.newest = producer

    def collect(self) -> None:
        """Markers say the same as the answers: one decision per producer."""
        for markers in self.coordinator.markers:
            before = producer_of(markers.producer.id, markers.producer.epoch - 1)
            assert self.decided.setdefault(before, markers.committed) is markers.committed
            self.sent.append(markers)
        self.coordinator.markers = []

    @rule(writer=WRITERS, says_who=st.booleans())
    def init(self, writer: int, says_who: bool) -> None:
        self.ask(writer, InitProducer(ID, TIMEOUT_MS, self.known.get(writer) if says_who else None))

    @rule(writer=WRITERS, partition=st.integers(0, 2))
    def add(self, writer: int, partition: int) -> None:
        if writer in self.known:
            self.ask(writer, AddPartitions(ID, self.known[writer], (TopicPartition("t", partition),), V2))

    @rule(writer=WRITERS, committed=st.booleans())
    def end(self, writer: int, committed: bool) -> None:
        if writer in self.known:
            self.ask(writer, EndTransaction(ID, self.known[writer], committed, V2))

    @rule(data=st.data())
    def write_markers(self, data: st.DataObject) -> None:
        """Any markers that were ever sent may be reported now, or again."""
        if self.sent:
            markers = data.draw(st.sampled_from(self.sent))
            self.coordinator.submit(MarkersWritten(ID, markers.producer))
            self.hear()

    @rule(seconds=st.sampled_from([0.1, 1.0, 11.0]))
    def pass_time(self, seconds: float) -> None:
        self.coordinator.pass_time(seconds)
        self.hear()

    @rule()
    def restart(self) -> None:
        """Whoever waits for an answer gets none; what is remembered is what was written."""
        before = self.coordinator.machine.state
        self.asked.clear()
        self.coordinator.restart()
        assert self.coordinator.machine.state == before

    @invariant()
    def only_the_newest_may_write(self) -> None:
        held = self.coordinator.machine.state.get(ID)
        if held is not None and self.newest is not None:
            assert (held.successor.id, held.successor.epoch) >= (self.newest.id, self.newest.epoch)


TestProducers = Producers.TestCase
TestProducers.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
