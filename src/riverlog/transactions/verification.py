"""Which transactions may begin in a partition (KIP-890), so that none is left open for ever.

A batch may arrive long after its transaction has ended. So the first batch of a transaction is let in only if the
coordinator says that the transaction is open and the partition belongs to it, and if no marker has come since it was
asked: a marker ends what is being verified. A yes holds until then, because a marker will come to every partition for
which one was given. Where no answer could be had, no batch overtakes the one that was asked for.

    begin -> Unverified --settle--> Verified        `end`, a later epoch or `expire` forget each of them, so that an
                  `---settle--> VerificationRefused   answer that is still on its way, or comes twice, lets nothing in

A no is kept only for those who waited for it: behind the last of them the coordinator is asked again.
"""

from dataclasses import dataclass
from typing import Final

from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.limits import PRODUCERS_PER_PARTITION_MAX
from riverlog.model.transactions import ProducerIdentity
from riverlog.records.batch import BatchHeader
from riverlog.transactions.limits import VERIFICATION_PATIENCE_SECONDS

_PLACE_KEPT: Final = frozenset((ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.CONCURRENT_TRANSACTIONS))
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


@dataclass(frozen=True, slots=True)
class Unverified:
    """The coordinator has not said yet whether the transaction is open."""


@dataclass(frozen=True, slots=True)
class Verified:
    """It has said yes."""


@dataclass(frozen=True, slots=True)
class VerificationRefused:
    """It has said no, in words that a producer knows what to do with."""

    code: ErrorCode
    message: str

    @property
    def may_change(self) -> bool:
        """Return whether the producer tries again, so that no batch may overtake it."""
        return self.code in _PLACE_KEPT


@dataclass(eq=False, slots=True)
class Verification:
    """One producer's transaction that is about to begin."""

    producer: ProducerIdentity
    lowest_sequence: int
    """The earliest batch that was to be appended: others come behind it."""
    begun_ms: int
    begins_epoch: bool
    """The producer speaks version 2 of transactions: each has its own epoch."""
    state: Unverified | Verified | VerificationRefused = Unverified()
    waiting: int = 0
    """How many requests will come again for the answer."""

    @property
    def is_verified(self) -> bool:
        return isinstance(self.state, Verified)

    @property
    def is_in_the_way(self) -> bool:
        """Return whether earlier epochs are too late. One that was refused for good is in nobody's way, though its no
        may be kept until all who waited for it have heard it."""
        return not isinstance(self.state, VerificationRefused) or self.state.may_change


class Verifications:
    """Those of one partition: one per producer id and epoch, so that whoever waits finds the answer it waited for."""

    __slots__ = ("_by_id",)

    def __init__(self) -> None:
        self._by_id: dict[ProducerId, dict[ProducerEpoch, Verification]] = {}

    def begin(
        self, producer: ProducerIdentity, sequence: int, *, begins_epoch: bool, now_ms: int
    ) -> Verification | None:
        """Find the producer's own, to be answered if it is not yet; None where a later epoch has one."""
        if self._later(producer) is not None:
            return None
        epochs = self._by_id.get(producer.id, {})
        if (known := epochs.get(producer.epoch)) is not None:
            known.lowest_sequence = min(known.lowest_sequence, sequence)
            return known
        if not epochs and len(self._by_id) >= PRODUCERS_PER_PARTITION_MAX:
            del self._by_id[next(iter(self._by_id))]  # the oldest: its producer is asked for again
        begun = Verification(producer, sequence, now_ms, begins_epoch)
        awaited = {epoch: each for epoch, each in epochs.items() if each.waiting}  # nobody comes back for the others
        self._by_id[producer.id] = {**awaited, producer.epoch: begun}
        return begun

    def wait(self, verification: Verification) -> None:
        """Keep the answer, which is on its way or just here, for one more who will come again for it."""
        verification.waiting += 1

    def settle(self, verification: Verification, answer: Verified | VerificationRefused) -> None:
        """Take the coordinator's answer; it counts as long as the verification stands."""
        verification.state = answer
        if not verification.waiting:
            self._forget_no(verification)

    def leave(self, verification: Verification) -> None:
        """Take note that one who waited has come again, or will not."""
        assert verification.waiting > 0
        verification.waiting -= 1
        if not verification.waiting:
            self._forget_no(verification)

    def check(self, header: BatchHeader, *, is_known: bool) -> None:
        """Refuse the first batch of a transaction that was not verified, or was ended meanwhile.

        With an epoch per transaction the first one has sequence 0, also of a producer that is not known here.
        """
        producer = ProducerIdentity(ProducerId(header.producer_id), ProducerEpoch(header.producer_epoch))
        if (later := self._later(producer)) is not None:
            raise Refusal(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer.id} is about to write with epoch {later}; {producer.epoch} came too late",
            )
        known = self._by_id.get(producer.id, {}).get(producer.epoch)
        if known is None or isinstance(known.state, Unverified):
            raise Refusal(
                ErrorCode.INVALID_TXN_STATE,
                f"no transaction of producer {producer.id} is known to be open here; it may have ended",
            )
        if isinstance(known.state, VerificationRefused):
            raise Refusal(known.state.code, known.state.message)
        first = 0 if known.begins_epoch and not is_known else known.lowest_sequence
        if header.base_sequence > first:
            raise Refusal(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer.id} sent sequence {header.base_sequence}; {first} comes first",
            )

    def stands(self, verification: Verification) -> bool:
        """Return whether no marker has come, no batch, and no later epoch since it was begun."""
        id_, epoch = verification.producer
        return self._by_id.get(id_, {}).get(epoch) is verification and self._later(verification.producer) is None

    def end(self, producer_id: ProducerId) -> None:
        """Forget all of a producer: its transaction has begun here, or has ended."""
        self._by_id.pop(producer_id, None)

    def end_all(self) -> None:
        """Forget all of them: whether their transactions still are open is not known here any more."""
        self._by_id.clear()

    def expire(self, older_than_ms: int) -> None:
        """Forget those of producers that did not come back."""
        for verification in [each for epochs in self._by_id.values() for each in epochs.values()]:
            if verification.begun_ms < older_than_ms:
                self._remove(verification)

    def _later(self, producer: ProducerIdentity) -> ProducerEpoch | None:
        """Return a later epoch that is about to write."""
        for epoch, each in self._by_id.get(producer.id, {}).items():
            if epoch > producer.epoch and each.is_in_the_way:
                return epoch
        return None

    def _forget_no(self, verification: Verification) -> None:
        """Ask again when the producer comes again, whatever it was told; a no that may change keeps its place."""
        no = verification.state
        if isinstance(no, VerificationRefused):
            verification.state = Unverified()
            if not no.may_change:
                self._remove(verification)

    def _remove(self, verification: Verification) -> None:
        epochs = self._by_id.get(verification.producer.id, {})
        if epochs.get(verification.producer.epoch) is verification:
            del epochs[verification.producer.epoch]
            if not epochs:
                del self._by_id[verification.producer.id]


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
        """Return whether the coordinator has said something that is not forgotten yet."""
        return not isinstance(self.verification.state, Unverified)

    @property
    def adds(self) -> bool:
        """Return whether the client leaves it to the partition to join its transaction."""
        return self.verification.begins_epoch

    def is_repeated(self, code: ErrorCode, seconds: float) -> bool:
        """Return whether to ask again after so many seconds: the transaction before this one is still ending."""
        return code is ErrorCode.CONCURRENT_TRANSACTIONS and seconds < VERIFICATION_PATIENCE_SECONDS

    def settle(self, code: ErrorCode) -> Verified | VerificationRefused:
        """Take the coordinator's answer, and return it in words that the client knows."""
        answer = Verified() if code is ErrorCode.NONE else self._refused(code)
        self.verifications.settle(self.verification, answer)
        return answer

    def _refused(self, code: ErrorCode) -> VerificationRefused:
        """Put a coordinator's no into words that a producer knows what to do with, as Kafka does."""
        if code in _TRY_AGAIN and not (self.adds and code is ErrorCode.CONCURRENT_TRANSACTIONS):
            # Older clients try again only for errors that they expect from a partition.
            return VerificationRefused(
                ErrorCode.NOT_ENOUGH_REPLICAS, f"the transaction is not verified yet: {code.title}"
            )
        if code is ErrorCode.PRODUCER_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        elif code is ErrorCode.TRANSACTION_ABORTABLE and not self.knows_abortable:
            code = ErrorCode.INVALID_TXN_STATE
        return VerificationRefused(
            code, f"{self.partition} belongs to no open transaction of this producer: {code.title}"
        )
