"""The members of shared transactions: producers of a pool that belongs to a transactional id.

    Free ---join---> Joined ---end---> Ending ---all markers are written---> Free
                        |                                                     ^
                        +-----end, and nothing was written--------------------+

The end is that of its batch; a member that gives up may come to its own before, which is an abort. Each end is written
with the next epoch, and whoever joins next writes with that: an attempt that comes back later is refused wherever it
writes. An id whose epochs are used up leaves the pool.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from riverlog.model.ids import ProducerEpoch, TopicPartition
from riverlog.model.transactions import PRODUCER_EPOCH_MAX, ProducerIdentity
from riverlog.transactions.incarnations import BatchName


class SharedMemberState(IntEnum):
    """Where a member stands, by the number in its record."""

    FREE = 0
    JOINED = 1
    COMMITTING = 2
    ABORTING = 3

    @property
    def is_ending(self) -> bool:
        return self in (SharedMemberState.COMMITTING, SharedMemberState.ABORTING)


class SharedMember(NamedTuple):
    """One producer of the pool, and the attempt of a task that writes with it, or did last."""

    producer: ProducerIdentity
    batch: BatchName
    task: int
    attempt: int
    state: SharedMemberState = SharedMemberState.JOINED
    partitions: frozenset[TopicPartition] = frozenset()
    """Where it has written, or may have; empty while it is free."""

    @property
    def is_spent(self) -> bool:
        """Return whether nobody can write with this id any more."""
        return self.state is SharedMemberState.FREE and self.producer.epoch >= PRODUCER_EPOCH_MAX

    def joined(self, batch: BatchName, task: int, attempt: int) -> "SharedMember":
        """Return it with an attempt of a task as its user."""
        assert self.state is SharedMemberState.FREE
        assert not self.is_spent
        return SharedMember(self.producer, batch, task, attempt)

    def added(self, partitions: Iterable[TopicPartition]) -> "SharedMember":
        """Take partitions into the transaction."""
        assert self.state is SharedMemberState.JOINED
        return self._replace(partitions=self.partitions.union(partitions))

    def ended(self, *, committed: bool) -> "SharedMember":
        """Decide; where nothing was written there is nothing left to do."""
        assert self.state is SharedMemberState.JOINED
        after = ProducerIdentity(self.producer.id, ProducerEpoch(self.producer.epoch + 1))
        state = SharedMemberState.COMMITTING if committed else SharedMemberState.ABORTING
        return self._replace(producer=after, state=state if self.partitions else SharedMemberState.FREE)

    def completed(self) -> "SharedMember":
        """Note that every partition knows how it ended."""
        assert self.state.is_ending
        return self._replace(state=SharedMemberState.FREE, partitions=frozenset())
