"""A topic whose partitions change, until it is made an image again.

Equal partitions, and equal lists in them, are one object: there are few different ones, and perhaps millions of
partitions.
"""

from functools import lru_cache
from typing import Any
from uuid import UUID

from riverlog.metadata.image import (
    NOTHING_RARE,
    PARTITIONS_PER_CHUNK,
    STATES_SHARED_MAX,
    LeaderRecoveryState,
    PartitionState,
    RareState,
    TopicImage,
)
from riverlog.metadata.records import (
    LEADER_UNCHANGED,
    RECOVERY_UNCHANGED,
    PartitionChangeRecord,
    PartitionRecord,
)
from riverlog.model.ids import LeaderEpoch, NodeId

Change = tuple[PartitionState | None, PartitionState]
"""A partition as it was, None where it is new, and as it is now."""


class TopicDraft:
    """A topic whose partitions change."""

    __slots__ = ("_chunks", "_open", "count", "id", "name")

    def __init__(self, topic: TopicImage) -> None:
        self.name, self.id, self.count = topic.name, topic.id, topic.partition_count
        self._chunks = list(topic.chunks)
        self._open: dict[int, list[PartitionState]] = {}
        """The partitions that are being changed, by the number of their chunk."""

    def put(self, record: PartitionRecord) -> Change:
        """Set a partition, or add it behind the last one."""
        index = record.partition_id
        assert 0 <= index <= self.count, f"{self.name} has {self.count} partitions, not {index}"
        state = _state(
            tuple(record.replicas),
            tuple(record.isr),
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            tuple(record.directories),
            _rare_state(record),
        )
        chunk, row = self._row(index)
        if index == self.count:
            chunk.append(state)
            self.count += 1
            return None, state
        before, chunk[row] = chunk[row], state
        return before, state

    def change(self, record: PartitionChangeRecord) -> Change:
        """Change what the record names of a partition."""
        index = record.partition_id
        if not 0 <= index < self.count:
            raise IndexError(index)
        chunk, row = self._row(index)
        before = chunk[row]
        replicas, isr, leader, leader_epoch, partition_epoch, directories = before if len(before) == 6 else before[:6]
        leads_anew = record.leader != LEADER_UNCHANGED
        after = chunk[row] = _state(
            replicas if record.replicas is None else tuple(record.replicas),
            isr if record.isr is None else tuple(record.isr),
            record.leader if leads_anew else leader,
            leader_epoch + 1 if leads_anew else leader_epoch,
            partition_epoch + 1,
            directories if record.directories is None else tuple(record.directories),
            _rare_after(before, record),
        )
        return before, after

    def clear_eligible(self) -> list[tuple[int, Change]]:
        """Forget who is eligible, as Apache Kafka does: each partition that knows anybody changes."""
        changes = list[tuple[int, Change]]()
        for index in eligible_somewhere(self.image()):
            forgotten = PartitionChangeRecord(partition_id=index, eligible_leader_replicas=(), last_known_elr=())
            changes.append((index, self.change(forgotten)))
        return changes

    def image(self) -> TopicImage:
        """Return the topic as it is now."""
        for number, states in self._open.items():
            self._chunks[number] = tuple(states)
        self._open.clear()
        return TopicImage(self.name, self.id, self.count, tuple(self._chunks))

    def _row(self, index: int) -> tuple[list[PartitionState], int]:
        number, row = divmod(index, PARTITIONS_PER_CHUNK)
        chunk = self._open.get(number)
        if chunk is None:
            if number == len(self._chunks):
                self._chunks.append(())
            chunk = self._open[number] = list(self._chunks[number])
        return chunk, row


def eligible_somewhere(topic: TopicImage) -> list[int]:
    """Return the partitions that know eligible leaders, or who led last."""
    return [
        number * PARTITIONS_PER_CHUNK + row
        for number, chunk in enumerate(topic.chunks)
        for row, state in enumerate(chunk)
        if (rare := rare_state(state)).eligible_leader_replicas or rare.last_known_elr
    ]


def rare_state(state: PartitionState) -> RareState:
    """Return what few partitions have."""
    return state[6] if len(state) > 6 else NOTHING_RARE


def _rare_state(record: PartitionRecord) -> RareState | None:
    adding, removing = record.adding_replicas, record.removing_replicas
    eligible, last_known = record.eligible_leader_replicas, record.last_known_elr
    if not (adding or removing or eligible or last_known or record.leader_recovery_state):
        return None
    return RareState(
        _ids(adding),
        _ids(removing),
        _ids(eligible or ()),
        _ids(last_known or ()),
        LeaderRecoveryState(record.leader_recovery_state),
    )


def _rare_after(state: PartitionState, record: PartitionChangeRecord) -> RareState | None:
    """Return the rare state with the fields that a record names."""
    adding, removing = record.adding_replicas, record.removing_replicas
    eligible, last_known = record.eligible_leader_replicas, record.last_known_elr
    recovery = record.leader_recovery_state
    if recovery == RECOVERY_UNCHANGED and adding is removing is eligible is last_known is None:
        return state[6] if len(state) > 6 else None
    before = rare_state(state)
    return RareState(
        before.adding_replicas if adding is None else _ids(adding),
        before.removing_replicas if removing is None else _ids(removing),
        before.eligible_leader_replicas if eligible is None else _ids(eligible),
        before.last_known_elr if last_known is None else _ids(last_known),
        before.leader_recovery_state if recovery == RECOVERY_UNCHANGED else LeaderRecoveryState(recovery),
    )


def _ids(values: tuple[int, ...]) -> tuple[NodeId, ...]:
    return tuple(NodeId(each) for each in values)


@lru_cache(maxsize=STATES_SHARED_MAX)
def _state(
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    leader: int,
    leader_epoch: int,
    partition_epoch: int,
    directories: tuple[UUID, ...],
    rare: RareState | None,
) -> PartitionState:
    """Return one object for all equal partitions."""
    common = (
        _one_object(replicas),
        _one_object(isr),
        NodeId(leader),
        LeaderEpoch(leader_epoch),
        partition_epoch,
        _one_object(directories),
    )
    return common if rare is None or rare == NOTHING_RARE else (*common, rare)


@lru_cache(maxsize=STATES_SHARED_MAX)
def _one_object(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return one object for all equal lists."""
    return values
