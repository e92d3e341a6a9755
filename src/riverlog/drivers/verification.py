"""Asking the coordinator before a transaction begins in a partition (KIP-890), so that none is left open for ever.

A batch may arrive long after its transaction has ended. So the first batch of a transaction is appended only if the
coordinator says that the transaction is open and the partition belongs to it, and if no marker has come since it was
asked: a marker ends what is being verified. A yes holds until then, because a marker will come to every partition for
which one was given. Where no answer could be had, no batch overtakes the one that was asked for.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from riverlog.drivers.limits import VERIFICATION_PATIENCE_SECONDS, VERIFICATION_RETRY_SECONDS
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.limits import PRODUCERS_PER_PARTITION_MAX
from riverlog.model.transactions import Producer, VerifyTransaction
from riverlog.partitions.not_yet import NotYet
from riverlog.records.batch import BatchHeader

_TRY_AGAIN: Final = frozenset(
    (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    )
)


class Verifying(NotYet):
    """The coordinator is being asked whether a transaction may begin."""


class Verification:
    """One producer's transaction that is about to begin."""

    __slots__ = ("answer", "begins_epoch", "begun_ms", "lowest_sequence", "producer", "waiting")

    def __init__(self, producer: Producer, sequence: int, begun_ms: int, *, begins_epoch: bool) -> None:
        self.producer = producer
        self.begins_epoch = begins_epoch
        """The producer speaks version 2 of transactions: each has its own epoch."""
        self.lowest_sequence = sequence
        """The earliest batch that was to be appended: others come behind it."""
        self.begun_ms = begun_ms
        self.answer: Refusal | bool | None = None
        """What the coordinator said: yes, or why not."""
        self.waiting = 0
        """How many requests will come again for the answer; a no is kept for them, and forgotten behind the last."""

    @property
    def is_refused(self) -> bool:
        """Tell whether the coordinator's no will stay."""
        return isinstance(self.answer, Refusal) and self.answer.code not in _PLACE_KEPT


class Verifications:
    """Those of one partition: one per producer id and epoch, so that whoever waits finds the answer it waited for."""

    __slots__ = ("_by_id",)

    def __init__(self) -> None:
        self._by_id: dict[ProducerId, dict[ProducerEpoch, Verification]] = {}

    def begin(self, producer: Producer, sequence: int, *, begins_epoch: bool, now_ms: int) -> Verification | None:
        """Give the producer's own, to be answered if it is not yet; None where a later epoch has one."""
        if self._later(producer.id, producer.epoch) is not None:
            return None
        epochs = self._by_id.get(producer.id, {})
        if (known := epochs.get(producer.epoch)) is not None:
            known.lowest_sequence = min(known.lowest_sequence, sequence)
            return known
        if not epochs and len(self._by_id) >= PRODUCERS_PER_PARTITION_MAX:
            del self._by_id[next(iter(self._by_id))]  # the oldest: its producer is asked for again
        begun = Verification(producer, sequence, now_ms, begins_epoch=begins_epoch)
        awaited = {epoch: each for epoch, each in epochs.items() if each.waiting}  # nobody comes back for the others
        self._by_id[producer.id] = {**awaited, producer.epoch: begun}
        return begun

    def check(self, header: BatchHeader, *, is_known: bool) -> None:
        """Refuse the first batch of a transaction that was not verified, or was ended meanwhile.

        With an epoch per transaction the first one has sequence 0, also of a producer that is not known here.
        """
        producer_id, producer_epoch = ProducerId(header.producer_id), ProducerEpoch(header.producer_epoch)
        if (later := self._later(producer_id, producer_epoch)) is not None:
            raise Refusal(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} is about to write with epoch {later}; {producer_epoch} came too late",
            )
        known = self._by_id.get(producer_id, {}).get(producer_epoch)
        if known is None or known.answer is None:
            raise Refusal(
                ErrorCode.INVALID_TXN_STATE,
                f"no transaction of producer {producer_id} is known to be open here; it may have ended",
            )
        if isinstance(known.answer, Refusal):
            raise known.answer
        first = 0 if known.begins_epoch and not is_known else known.lowest_sequence
        if header.base_sequence > first:
            raise Refusal(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} sent sequence {header.base_sequence}; {first} comes first",
            )

    def stands(self, verification: Verification) -> bool:
        """Tell whether no marker has come, no batch, and no later epoch since it was begun."""
        id_, epoch = verification.producer
        return self._by_id.get(id_, {}).get(epoch) is verification and self._later(id_, epoch) is None

    def end(self, producer_id: ProducerId) -> None:
        """Let none of a producer stand: its transaction has begun here, or has ended."""
        self._by_id.pop(producer_id, None)

    def forget_no(self, verification: Verification) -> None:
        """Ask again when the producer comes again, whatever it was told; a no that may change keeps its place."""
        no = verification.answer
        if not isinstance(no, Refusal):
            return
        verification.answer = None
        if no.code not in _PLACE_KEPT:
            self._remove(verification)

    def expire(self, older_than_ms: int) -> None:
        """Forget those of producers that did not come back."""
        for verification in [each for epochs in self._by_id.values() for each in epochs.values()]:
            if verification.begun_ms < older_than_ms:
                self._remove(verification)

    def _later(self, producer_id: ProducerId, epoch: ProducerEpoch) -> ProducerEpoch | None:
        """Give a later epoch that is about to write. One that was refused is in nobody's way, though its no may be
        kept until all who waited for it have heard it."""
        for other, each in self._by_id.get(producer_id, {}).items():
            if other > epoch and not each.is_refused:
                return other
        return None

    def _remove(self, verification: Verification) -> None:
        epochs = self._by_id.get(verification.producer.id, {})
        if epochs.get(verification.producer.epoch) is verification:
            del epochs[verification.producer.epoch]
            if not epochs:
                del self._by_id[verification.producer.id]


_PLACE_KEPT: Final = frozenset((ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.CONCURRENT_TRANSACTIONS))


@dataclass(frozen=True, slots=True)
class Question:
    """What the coordinator is asked for one partition, and where its answer belongs."""

    partition: TopicPartition
    transactional_id: str
    verifications: Verifications
    verification: Verification
    knows_abortable: bool
    """The client knows what to do when it is told that its transaction has to be aborted."""

    @property
    def is_answered(self) -> bool:
        """Tell whether the coordinator has said something that is not forgotten yet."""
        return self.verification.answer is not None

    @property
    def _adds(self) -> bool:
        """Tell whether the client leaves it to the partition to join its transaction."""
        return self.verification.begins_epoch

    def ask(self, port: VerifyTransaction) -> "asyncio.Future[ErrorCode]":
        """Ask, now; a coordinator that is here may have answered already."""
        producer = self.verification.producer
        return asyncio.ensure_future(
            port.verify(self.transactional_id, producer.id, producer.epoch, self.partition, adds=self._adds)
        )

    async def hear(self, port: VerifyTransaction, asked: "asyncio.Future[ErrorCode]") -> Refusal | bool:
        """Give the answer; where the transaction before this one is still ending, wait a little and ask again."""
        loop = asyncio.get_running_loop()
        patience_ends = loop.time() + VERIFICATION_PATIENCE_SECONDS
        while True:
            code = await asked
            if code is not ErrorCode.CONCURRENT_TRANSACTIONS or loop.time() >= patience_ends:
                return True if code is ErrorCode.NONE else self._refusal(code)
            await asyncio.sleep(VERIFICATION_RETRY_SECONDS)
            asked = self.ask(port)

    def _refusal(self, code: ErrorCode) -> Refusal:
        """Say a coordinator's no in words that a producer knows what to do with, as Kafka does."""
        if code in _TRY_AGAIN and not (self._adds and code is ErrorCode.CONCURRENT_TRANSACTIONS):
            # Older clients try again only for errors that they expect from a partition.
            return Refusal(ErrorCode.NOT_ENOUGH_REPLICAS, f"the transaction is not verified yet: {code.title}")
        if code is ErrorCode.PRODUCER_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        elif code is ErrorCode.TRANSACTION_ABORTABLE and not self.knows_abortable:
            code = ErrorCode.INVALID_TXN_STATE
        return Refusal(code, f"{self.partition} belongs to no open transaction of this producer: {code.title}")


def verify(port: VerifyTransaction, questions: Sequence[Question]) -> "asyncio.Future[None]":
    """Ask for all that are unanswered; when the future is done, whoever waited for it finds the answers to all, and a
    no only then.

    It is done at once where the coordinator says yes at once: nothing can come between that and the batch.
    """
    loop = asyncio.get_running_loop()
    unanswered = [question for question in questions if not question.is_answered]
    asked = [question.ask(port) for question in unanswered]
    heard: asyncio.Future[None] = loop.create_future()
    if all(_is_yes(each) for each in asked):
        for question in unanswered:
            question.verification.answer = True
        heard.set_result(None)
        return heard

    for question in questions:
        question.verification.waiting += 1

    def forget() -> None:
        for question in questions:
            question.verification.waiting -= 1
            if not question.verification.waiting:
                question.verifications.forget_no(question.verification)

    def tell(asking: "asyncio.Task[None]") -> None:
        """Let all who wait come again, and forget directly behind them: before anything else is received."""
        if asking.cancelled():
            heard.cancel()
        elif (error := asking.exception()) is not None:
            heard.set_exception(error)
        else:
            heard.set_result(None)
        loop.call_soon(forget)

    loop.create_task(_hear_all(port, unanswered, asked)).add_done_callback(tell)
    return heard


def _is_yes(asked: "asyncio.Future[ErrorCode]") -> bool:
    return asked.done() and asked.exception() is None and asked.result() is ErrorCode.NONE


async def _hear_all(
    port: VerifyTransaction, questions: Sequence[Question], asked: "Sequence[asyncio.Future[ErrorCode]]"
) -> None:
    hearing = (question.hear(port, each) for question, each in zip(questions, asked, strict=True))
    answers = await asyncio.gather(*hearing)
    for question, answer in zip(questions, answers, strict=True):
        question.verification.answer = answer
