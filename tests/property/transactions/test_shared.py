"""Owners and members of one pipeline whose calls are lost, repeated and late: a batch is decided once, and as one."""

from collections import defaultdict
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.machine import Ticket
from riverlog.model.transactions import ProducerIdentity
from riverlog.transactions.commands import (
    AddPartitions,
    DescribeBatches,
    EndBatch,
    InitProducer,
    JoinBatch,
    MarkersWritten,
    NeedsProducerId,
    PartitionsReply,
    ProducerReply,
    SendMarkers,
)
from riverlog.transactions.incarnations import BatchName
from riverlog.transactions.members import SharedMember, SharedMemberState
from riverlog.transactions.records import MemberFact, MemberName
from riverlog.transactions.states import NOBODY
from tests.support.transactions import ID, V2, Coordinator, producer_of

DRIVERS = st.sampled_from([0, 0, 0, 1])
BATCHES = st.builds(BatchName, st.sampled_from("aaab"), st.sampled_from([0, 0, 0, 1]))
FATES = st.sampled_from(["arrives", "arrives", "arrives", "arrives, and again later", "is late"])
TIMEOUT_MS = 10_000
Call = InitProducer | JoinBatch | AddPartitions | EndBatch


class Pipeline(RuleBasedStateMachine):
    """Two drivers that take over from each other; calls come late, twice, in any order, or never."""

    def __init__(self) -> None:
        super().__init__()
        self.coordinator = Coordinator()
        self.owners: dict[int, ProducerIdentity] = {}
        self.network: list[tuple[int, Call]] = []
        self.asked: dict[Ticket, tuple[int, Call]] = {}
        self.joined: dict[ProducerIdentity, JoinBatch] = {}
        """What each producer of the pool was given for: never for two things."""
        self.decided: dict[BatchName, frozenset[ProducerIdentity]] = {}
        """The members of batches, by the call that committed them."""
        self.confirmed: set[BatchName] = set()
        self.markers: dict[ProducerIdentity, bool] = {}
        self.sent: list[SendMarkers] = []

    @initialize(epoch=st.sampled_from([0, 32_764, 32_766]))
    def begin(self, epoch: int) -> None:
        """Some pools have an id that is near the end of its epochs."""
        self.owners[0] = self.coordinator.init(timeout_ms=TIMEOUT_MS)
        free = SharedMember(producer_of(7, epoch), BatchName("z", 0), 0, 0, SharedMemberState.FREE)
        self.coordinator.log.append(MemberFact(MemberName(ID, ProducerId(7)), free))
        self.coordinator.restart()

    @rule(driver=DRIVERS, fate=FATES)
    def take_over(self, driver: int, fate: str) -> None:
        self.call(driver, InitProducer(ID, TIMEOUT_MS), fate)

    @rule(driver=DRIVERS, batch=BATCHES, task=st.integers(0, 1), attempt=st.integers(0, 1), fate=FATES)
    def join(self, driver: int, batch: BatchName, task: int, attempt: int, fate: str) -> None:
        if driver in self.owners:
            self.call(driver, JoinBatch(ID, self.owners[driver], batch, task, attempt), fate)

    @rule(driver=DRIVERS, batch=BATCHES, task=st.integers(0, 1), attempt=st.integers(0, 1))
    def join_and_write(self, driver: int, batch: BatchName, task: int, attempt: int) -> None:
        """What most do."""
        before = len(self.joined)
        self.join(driver, batch, task, attempt, "arrives")
        if len(self.joined) > before:
            self.call(driver, AddPartitions(ID, list(self.joined)[-1], (TopicPartition("t", 0),), V2), "arrives")

    @rule(driver=DRIVERS, data=st.data(), partition=st.integers(0, 1), fate=FATES)
    def write(self, driver: int, data: st.DataObject, partition: int, fate: str) -> None:
        """Any attempt writes, also long after its time."""
        if self.joined:
            member = data.draw(st.sampled_from(list(self.joined)[-3:]))
            self.call(driver, AddPartitions(ID, member, (TopicPartition("t", partition),), V2), fate)

    @rule(driver=DRIVERS, data=st.data(), batch=BATCHES, committed=st.booleans(), fate=FATES)
    def end(self, driver: int, data: st.DataObject, batch: BatchName, committed: bool, fate: str) -> None:
        """Members of the last round are listed, or of one before that was aborted."""
        if driver not in self.owners:
            return
        known = [producer for producer, joined in self.joined.items() if joined.batch == batch][-3:]
        members = data.draw(st.lists(st.sampled_from(known), unique=True, max_size=2)) if known else []
        self.call(driver, EndBatch(ID, self.owners[driver], batch, committed, tuple(members)), fate)

    def call(self, driver: int, call: Call, fate: str) -> None:
        if fate != "arrives":
            self.network.append((driver, call))
        if fate != "is late":
            self.arrive(driver, call)

    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        """Any call that is on its way arrives."""
        if self.network:
            self.arrive(*self.network.pop(data.draw(st.integers(0, len(self.network) - 1))))

    def arrive(self, driver: int, call: Call) -> None:
        decides = isinstance(call, EndBatch) and call.committed and not self.is_committed(call.batch)
        ticket = self.coordinator.submit(call)
        if decides and self.coordinator.answers.get(ticket) == ProducerReply():
            assert isinstance(call, EndBatch)
            self.decided[call.batch] = frozenset(call.members)
        self.asked[ticket] = (driver, call)
        self.hear()

    @rule(data=st.data())
    def write_markers(self, data: st.DataObject) -> None:
        """Any markers that were ever sent may be reported now, or again."""
        if self.sent:
            for markers in data.draw(st.sampled_from([self.sent, self.sent[-1:], self.sent[:1]])):
                self.coordinator.submit(MarkersWritten(ID, markers.producer))
            self.hear()

    @rule(seconds=st.sampled_from([0.1, 1.0, 11.0]))
    def pass_time(self, seconds: float) -> None:
        self.coordinator.pass_time(seconds)
        self.hear()

    @rule()
    def restart(self) -> None:
        """Whoever waits for an answer gets none; what is remembered is what was written."""
        before = (self.coordinator.machine.state, self.coordinator.machine.pools)
        self.asked.clear()
        self.coordinator.restart()
        assert (self.coordinator.machine.state, self.coordinator.machine.pools) == before

    def hear(self) -> None:
        while answered := [ticket for ticket in self.asked if ticket in self.coordinator.answers]:
            driver, call = self.asked.pop(answered[0])
            reply = self.coordinator.answers[answered[0]]
            if isinstance(reply, NeedsProducerId):
                assert isinstance(call, InitProducer | JoinBatch)
                new_id = ProducerId(next(self.coordinator._ids))
                self.asked[self.coordinator.submit(replace(call, new_id=new_id))] = (driver, call)
            elif isinstance(reply, PartitionsReply):
                assert isinstance(call, AddPartitions)
                if reply.codes[0] is ErrorCode.NONE:
                    assert call.producer not in self.markers, "an attempt writes after its end was decided"
            elif isinstance(reply, ProducerReply) and reply.code is ErrorCode.NONE:
                self.told(driver, call, reply.producer)
        self.collect()

    def told(self, driver: int, call: Call, producer: ProducerIdentity) -> None:
        match call:
            case InitProducer():
                self.owners[driver] = producer
            case JoinBatch() if producer != NOBODY:
                given = self.joined.setdefault(producer, call)
                assert (given.owner, given.batch, given.task, given.attempt) == (
                    call.owner,
                    call.batch,
                    call.task,
                    call.attempt,
                )
            case JoinBatch():
                assert self.is_committed(call.batch)
            case EndBatch(committed=True):
                assert self.is_committed(call.batch)
                self.confirmed.add(call.batch)
            case _:
                pass

    def collect(self) -> None:
        """Each member's part ends once, in one way."""
        for markers in self.coordinator.markers:
            writer = ProducerIdentity(markers.producer.id, ProducerEpoch(markers.producer.epoch - 1))
            assert writer in self.joined
            assert self.markers.setdefault(writer, markers.committed) is markers.committed
            self.sent.append(markers)
        self.coordinator.markers = []

    def is_committed(self, batch: BatchName) -> bool:
        committed: int = self.coordinator.ask(DescribeBatches(ID, batch.incarnation)).committed
        return batch.number <= committed

    @invariant()
    def what_is_committed_stays_committed(self) -> None:
        assert all(self.is_committed(batch) for batch in self.confirmed)

    @invariant()
    def a_batch_has_each_task_at_most_once(self) -> None:
        tasks: dict[BatchName, list[int]] = defaultdict(list)
        for member, committed in self.markers.items():
            if committed:
                tasks[self.joined[member].batch].append(self.joined[member].task)
        assert all(len(each) == len(set(each)) for each in tasks.values())

    @invariant()
    def the_members_that_were_listed_are_committed_and_no_others(self) -> None:
        for member, committed in self.markers.items():
            decided = self.decided.get(self.joined[member].batch)
            if decided is not None:
                assert committed is (member in decided)


TestPipeline = Pipeline.TestCase
TestPipeline.settings = settings(max_examples=250, stateful_step_count=40, deadline=None)
