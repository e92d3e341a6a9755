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
from riverlog.model.transactions import PRODUCER_EPOCH_MAX, Producer
from riverlog.transactions.incarnations import BatchName


class MemberState(IntEnum):
    """Where a member stands, by the number in its record."""

    FREE = 0
    JOINED = 1
    COMMITTING = 2
    ABORTING = 3

    @property
    def is_ending(self) -> bool:
        return self in (MemberState.COMMITTING, MemberState.ABORTING)


class Member(NamedTuple):
    """One producer of the pool, and the attempt of a task that writes with it, or did last."""

    producer: Producer
    batch: BatchName
    task: int
    attempt: int
    state: MemberState = MemberState.JOINED
    partitions: frozenset[TopicPartition] = frozenset()
    """Where it has written, or may have; empty while it is free."""

    @property
    def is_spent(self) -> bool:
        """Tell whether nobody can write with this id any more."""
        return self.state is MemberState.FREE and self.producer.epoch >= PRODUCER_EPOCH_MAX

    def joined(self, batch: BatchName, task: int, attempt: int) -> "Member":
        """Let an attempt of a task write with the id."""
        assert self.state is MemberState.FREE
        assert not self.is_spent
        return Member(self.producer, batch, task, attempt)

    def added(self, partitions: Iterable[TopicPartition]) -> "Member":
        """Take partitions into the transaction."""
        assert self.state is MemberState.JOINED
        return self._replace(partitions=self.partitions.union(partitions))

    def ended(self, *, committed: bool) -> "Member":
        """Decide; where nothing was written there is nothing left to do."""
        assert self.state is MemberState.JOINED
        after = Producer(self.producer.id, ProducerEpoch(self.producer.epoch + 1))
        state = MemberState.COMMITTING if committed else MemberState.ABORTING
        return self._replace(producer=after, state=state if self.partitions else MemberState.FREE)

    def completed(self) -> "Member":
        """Note that every partition knows how it ended."""
        assert self.state.is_ending
        return self._replace(state=MemberState.FREE, partitions=frozenset())
