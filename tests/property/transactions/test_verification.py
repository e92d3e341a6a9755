"""Batches, answers and markers that come late, twice, in any order or never: no transaction is left open for ever."""

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import ProducerId
from riverlog.transactions.verification import Question, Unverified, Verifications
from tests.support.verification import ORDERS, header, producer


@dataclass
class Ask:
    """A question on its way, and the coordinator's answer once it has decided."""

    question: Question
    code: ErrorCode | None = None
    heard: bool = False


class Partition(RuleBasedStateMachine):
    """One producer id, one partition, and a coordinator that is nothing but what it has promised."""

    def __init__(self) -> None:
        super().__init__()
        self.verifications = Verifications()
        self.asks: list[Ask] = []
        self.now_ms = 0
        self.epoch = 0
        self.state = "ended"  # of the transaction, at the coordinator: ended, open or ending
        self.belongs = False
        """A marker will come to the partition."""
        self.is_open_here = False
        self.open_epoch = -1

    @initialize(adds=st.booleans())
    def speak(self, adds: bool) -> None:
        """Speak version 2 of transactions, with an epoch each, or the one before it."""
        self.adds = adds

    # -- the coordinator

    @rule(belongs=st.booleans())
    def begin(self, belongs: bool) -> None:
        if self.state == "ended":
            self.state, self.belongs = "open", belongs and not self.adds

    @rule(marker_arrives=st.booleans())
    def end(self, marker_arrives: bool) -> None:
        if self.state == "open":
            self.state = "ending" if self.belongs else "ended"
            self.epoch += self.adds
        if marker_arrives:
            self.marker_arrives()

    @rule(number=st.integers(0, 5))
    def decide(self, number: int) -> None:
        """Answer one that arrived, as the transaction stands now."""
        undecided = [ask for ask in self.asks if ask.code is None]
        if not undecided:
            return
        ask = undecided[number % len(undecided)]
        if self.state == "ending":
            ask.code = ErrorCode.CONCURRENT_TRANSACTIONS
        elif ask.question.verification.producer.epoch != self.epoch:
            ask.code = ErrorCode.PRODUCER_FENCED
        elif self.state == "open" and (self.belongs or self.adds):
            ask.code, self.belongs = ErrorCode.NONE, True
        else:
            ask.code = ErrorCode.TRANSACTION_ABORTABLE

    def marker_arrives(self) -> None:
        if self.state == "ending":
            self.verifications.end(ProducerId(7))
            self.is_open_here = self.belongs = False
            self.state = "ended"

    # -- the partition

    @rule(back=st.integers(0, 1), sequence=st.sampled_from([0, 0, 3]), is_decided=st.booleans())
    def batch_arrives(self, back: int, sequence: int, is_decided: bool) -> None:
        """Append a batch of this transaction or an earlier one, or ask whether it may begin, as Produce does."""
        epoch = max(self.epoch - back, 0)
        if self.is_open_here and self.open_epoch == epoch:
            return  # behind the first batch there is nothing to verify
        try:
            self.verifications.check(header(sequence, epoch), is_known=True)
        except Refusal:
            self.ask(epoch, sequence)
            if is_decided:
                self.decide(-1)
        else:
            self.is_open_here, self.open_epoch = True, epoch
            self.verifications.end(ProducerId(7))

    def ask(self, epoch: int, sequence: int) -> None:
        self.now_ms += 1
        begun = self.verifications.begin(producer(epoch), sequence, begins_epoch=self.adds, now_ms=self.now_ms)
        if begun is not None and begun.state == Unverified():
            self.verifications.wait(begun)
            self.asks.append(Ask(Question(ORDERS, "id", self.verifications, begun, knows_abortable=True)))

    @rule(number=st.integers(0, 5), fate=st.sampled_from(["arrives", "arrives", "arrives, and again later", "is lost"]))
    def answer(self, number: int, fate: str) -> None:
        """Make whoever waited for an answer come again, or be gone."""
        decided = [ask for ask in self.asks if ask.code is not None]
        if not decided:
            return
        ask = decided[number % len(decided)]
        if fate != "is lost":
            assert ask.code is not None
            ask.question.settle(ask.code)
        if not ask.heard:
            self.verifications.leave(ask.question.verification)
        ask.heard = True
        if fate != "arrives, and again later":
            self.asks.remove(ask)

    @rule(age_ms=st.integers(0, 5))
    def expire(self, age_ms: int) -> None:
        self.verifications.expire(self.now_ms - age_ms)

    def teardown(self) -> None:
        """Once nothing is on its way any more, the first batch of a transaction is let in."""
        while self.asks:
            self.decide(0)
            self.answer(0, "arrives")
        self.end(marker_arrives=True)
        self.begin(belongs=True)
        for _ in range(2):
            self.batch_arrives(0, 0, is_decided=True)
            self.answer(0, "arrives")
        assert self.is_open_here

    @invariant()
    def whatever_is_open_here_will_be_ended(self) -> None:
        assert not self.is_open_here or (self.belongs and self.state != "ended")


TestPartition = Partition.TestCase
TestPartition.settings = settings(max_examples=400, stateful_step_count=40, deadline=None)
