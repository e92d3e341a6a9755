"""What a group coordinator remembers: exactly what its records say, so that replaying them gives it again.

`apply` is the only place where it changes. A classic group stands here as its last record; one without members is
Empty, and one with members is Stable until the soft state (`soft_state.py`) knows better. A group that only ever
committed offsets has no record of its own: it exists as long as its offsets do.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from riverlog.groups.consumer.group import ConsumerGroup
from riverlog.groups.offsets.committed_offsets import Offsets
from riverlog.groups.records import (
    ConsumerGroupKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupValue,
    GroupFact,
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionMarker,
)


@dataclass(slots=True)
class GroupsState:
    """Every group of one partition of the topic, and its offsets."""

    classic: dict[str, GroupMetadataValue] = field(default_factory=dict)
    consumers: dict[str, ConsumerGroup] = field(default_factory=dict)
    offsets: Offsets = field(default_factory=Offsets)

    def apply(self, fact: GroupFact) -> None:
        """Remember one fact."""
        if isinstance(fact, TransactionMarker):
            self.offsets.end_transaction(fact.producer_id, committed=fact.committed)
            return
        match fact.key:
            case OffsetCommitKey():
                assert fact.value is None or isinstance(fact.value, OffsetCommitValue)
                self.offsets.apply(fact.key, fact.value, fact.producer_id)
            case GroupMetadataKey():
                assert fact.value is None or isinstance(fact.value, GroupMetadataValue)
                if fact.value is None:
                    self.classic.pop(fact.key.group, None)
                else:
                    self.classic[fact.key.group] = fact.value
            case _:
                assert not isinstance(fact.value, OffsetCommitValue | GroupMetadataValue)
                self._apply_to_consumers(fact.key, fact.value)

    def records(self) -> Iterator[GroupRecord]:
        """Return records which make an empty state equal to this one."""
        for group_id, value in self.classic.items():
            yield GroupRecord(GroupMetadataKey(group_id), value)
        for group in self.consumers.values():
            yield from group.records()
        yield from self.offsets.records()

    def _apply_to_consumers(self, key: ConsumerGroupKey, value: ConsumerGroupValue | None) -> None:
        group = self.consumers.get(key.group_id)
        if value is None and isinstance(key, ConsumerGroupMetadataKey):
            self.consumers.pop(key.group_id, None)
        elif group is not None:
            group.apply(key, value)
        elif value is not None:
            group = self.consumers[key.group_id] = ConsumerGroup(key.group_id)
            group.apply(key, value)
