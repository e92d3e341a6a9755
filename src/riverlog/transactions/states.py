"""A transactional id and the transaction it is in, with every step that leads from one state to the next.

             add partitions              end                    all markers are written
    Empty ------------------> Ongoing -------> PrepareCommit ----------------------------> CompleteCommit
      ^                        ^    |  end, time-out, a new producer                              |
      |                        |    +--------> PrepareAbort -----------------------------> CompleteAbort
      |                        |                                                               |  |
      |                        +---------------------- add partitions -------------------------+--+
      +----------------------------------------------- a new producer -------------------------+

By the rules of KIP-890 part 2 (version 2) every end is written with the next epoch, so that nothing sent before it can
reach a later transaction. When the epochs of a producer id are used up, the end names the id that follows it.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from riverlog.model.ids import NO_PRODUCER, NO_PRODUCER_EPOCH, NO_TIMESTAMP, ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.transactions import PRODUCER_EPOCH_MAX, ProducerIdentity, TransactionVersion
from riverlog.transactions.incarnations import Shared


class TransactionState(IntEnum):
    """Where a transactional id stands, by Kafka's numbers. Dead and PrepareEpochFence are never remembered here."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """Name the state as Kafka does: `PrepareCommit`."""
        return self.name.title().replace("_", "")

    @property
    def is_ending(self) -> bool:
        """Return whether the decision is made, and the markers are on their way."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_ended(self) -> bool:
        return self in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


NOBODY: Final = ProducerIdentity(NO_PRODUCER, NO_PRODUCER_EPOCH)
FIRST_EPOCH: Final = ProducerEpoch(0)


class Transaction(NamedTuple):
    """What is known about one transactional id. A tuple: each step makes another one, and that takes a fifth of the
    time."""

    producer: ProducerIdentity
    """The one that may write."""
    timeout_ms: int
    updated_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    """Where the transaction has written, or may have; empty unless there is one."""
    started_ms: int = NO_TIMESTAMP
    version: TransactionVersion = TransactionVersion.CLASSIC
    """The rules by which it was written, or ended."""
    last: ProducerIdentity = NOBODY
    """The one that `producer` took over from, if it may ask again for what it did then."""
    next_producer_id: ProducerId = NO_PRODUCER
    """The id that follows once the markers are written; only where the epochs were used up."""
    shared: Shared | None = None
    """The batches of its members, where the id is used in that way; the partitions are theirs then."""

    @property
    def is_shared_now(self) -> bool:
        """Return whether the transaction that is open is one of members."""
        return self.shared is not None and self.shared.is_open

    @property
    def is_exhausted(self) -> bool:
        """Return whether the epochs of the producer's id are used up."""
        return self.producer.epoch >= PRODUCER_EPOCH_MAX - 1

    def is_of(self, producer: ProducerIdentity) -> bool:
        """Return whether the producer may write; the last epoch of an id only fences."""
        return producer == self.producer and producer.epoch < PRODUCER_EPOCH_MAX

    @property
    def successor(self) -> ProducerIdentity:
        """Return the producer that may write next."""
        return (
            self.producer
            if self.next_producer_id == NO_PRODUCER
            else ProducerIdentity(self.next_producer_id, FIRST_EPOCH)
        )

    @property
    def is_committed(self) -> bool:
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)

    def renewed(
        self, producer: ProducerIdentity, *, last: ProducerIdentity, timeout_ms: int, now_ms: int
    ) -> "Transaction":
        """Begin anew with another producer, or with the same one that asked again."""
        assert not self.state.is_ending
        assert self.state is not TransactionState.ONGOING
        shared = None if self.shared is None else self.shared.renewed()
        return Transaction(producer, timeout_ms, now_ms, last=last, shared=shared)

    def joined(self, partitions: Iterable[TopicPartition], version: TransactionVersion, now_ms: int) -> "Transaction":
        """Take partitions into the transaction; the first of them begin it."""
        assert not self.state.is_ending
        is_begun = self.state is TransactionState.ONGOING
        return self._replace(
            state=TransactionState.ONGOING,
            partitions=self.partitions.union(partitions),
            started_ms=self.started_ms if is_begun else now_ms,
            updated_ms=now_ms,
            version=version,
        )

    def ended(
        self, *, committed: bool, version: TransactionVersion, now_ms: int, new_id: ProducerId = NO_PRODUCER
    ) -> "Transaction":
        """Decide, on behalf of the producer; without partitions there is nothing left to do."""
        bumps = version >= TransactionVersion.EPOCH_PER_TRANSACTION
        return self._decided(
            committed=committed,
            producer=_next(self.producer) if bumps else self.producer,
            last=self.producer if bumps else self.last,
            version=version,
            now_ms=now_ms,
            next_producer_id=new_id if bumps and self.is_exhausted else NO_PRODUCER,
        )

    def fenced(self, *, last: ProducerIdentity, now_ms: int) -> "Transaction":
        """Abort with an epoch that the producer does not have: from here on it is refused everywhere."""
        assert self.state is TransactionState.ONGOING
        return self._decided(
            committed=False,
            producer=_next(self.producer),
            last=last,
            version=TransactionVersion.EPOCH_PER_TRANSACTION,
            now_ms=now_ms,
            next_producer_id=NO_PRODUCER,
        )

    def completed(self, now_ms: int) -> "Transaction":
        """Note that every partition knows how the transaction ended."""
        assert self.state.is_ending
        return self._replace(
            producer=self.successor,
            next_producer_id=NO_PRODUCER,
            state=TransactionState.COMPLETE_COMMIT if self.is_committed else TransactionState.COMPLETE_ABORT,
            partitions=frozenset(),
            updated_ms=now_ms,
        )

    def _decided(
        self,
        *,
        committed: bool,
        producer: ProducerIdentity,
        last: ProducerIdentity,
        version: TransactionVersion,
        now_ms: int,
        next_producer_id: ProducerId,
    ) -> "Transaction":
        assert not self.state.is_ending
        decided = self._replace(
            producer=producer,
            last=last,
            state=TransactionState.PREPARE_COMMIT if committed else TransactionState.PREPARE_ABORT,
            started_ms=self.started_ms if self.state is TransactionState.ONGOING else now_ms,
            updated_ms=now_ms,
            version=version,
            next_producer_id=next_producer_id,
        )
        return decided if decided.partitions else decided.completed(now_ms)


def _next(producer: ProducerIdentity) -> ProducerIdentity:
    return ProducerIdentity(producer.id, ProducerEpoch(min(producer.epoch + 1, PRODUCER_EPOCH_MAX)))
