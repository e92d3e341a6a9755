"""Committed offsets, and those that wait for a transaction to end.

A partition's pending offsets stand in the order of the log. Whatever takes effect for a partition outdates what stood
before it: a transaction that ends later than a newer commit changes nothing.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from riverlog.groups.records import GroupRecord, OffsetCommitKey, OffsetCommitValue
from riverlog.model.ids import NO_PRODUCER, ProducerId, TopicPartition

Committed = dict[TopicPartition, OffsetCommitValue]
Pending = dict[TopicPartition, dict[ProducerId, OffsetCommitValue]]


@dataclass(slots=True)
class Offsets:
    """The offsets of all groups; no group stands here without one."""

    by_group: dict[str, Committed] = field(default_factory=dict)
    pending: dict[str, Pending] = field(default_factory=dict)
    open_transactions: dict[ProducerId, set[tuple[str, TopicPartition]]] = field(default_factory=dict)
    """Where each producer has offsets pending: the index of `pending`."""

    def of(self, group_id: str) -> Committed:
        """Return what a group has committed; not to be changed."""
        return self.by_group.get(group_id, {})

    def is_pending(self, group_id: str, partition: TopicPartition) -> bool:
        """Return whether a transaction may yet change the partition's offset."""
        return partition in self.pending.get(group_id, ())

    def known(self, group_id: str) -> set[TopicPartition]:
        """Name the partitions for which the group has an offset, committed or pending."""
        return self.by_group.get(group_id, {}).keys() | self.pending.get(group_id, {}).keys()

    def has_group(self, group_id: str) -> bool:
        return group_id in self.by_group or group_id in self.pending

    def groups(self) -> set[str]:
        return self.by_group.keys() | self.pending.keys()

    def topics(self) -> set[str]:
        """Name the topics for which anything is committed."""
        return {partition.topic for committed in self.by_group.values() for partition in committed}

    def of_topics(self, group_id: str, topics: Container[str]) -> Iterator[TopicPartition]:
        """Name the group's partitions of these topics for which there is an offset, committed or pending."""
        committed = self.of(group_id)
        yield from (partition for partition in committed if partition.topic in topics)
        pending = self.pending.get(group_id, ())
        yield from (each for each in pending if each.topic in topics and each not in committed)

    def values(self, group_id: str, partition: TopicPartition) -> Iterator[OffsetCommitValue]:
        """Return the partition's offset and those that may take its place."""
        if (committed := self.of(group_id).get(partition)) is not None:
            yield committed
        yield from self.pending.get(group_id, {}).get(partition, {}).values()

    def apply(self, key: OffsetCommitKey, value: OffsetCommitValue | None, producer_id: ProducerId) -> None:
        """Remember an offset, or that there is none any more."""
        partition = TopicPartition(key.topic, key.partition)
        if value is None:
            self._forget_pending(key.group, partition, self._producers(key.group, partition))
            self._forget(key.group, partition)
        elif producer_id == NO_PRODUCER:
            outdated = self._producers(key.group, partition) if self.pending else []
            self._commit(key.group, partition, value, outdated)
        else:
            waiting = self.pending.setdefault(key.group, {}).setdefault(partition, {})
            waiting.pop(producer_id, None)  # the newest stands last
            waiting[producer_id] = value
            self.open_transactions.setdefault(producer_id, set()).add((key.group, partition))

    def end_transaction(self, producer_id: ProducerId, *, committed: bool) -> None:
        """Commit a producer's pending offsets, or forget them."""
        for group_id, partition in sorted(self.open_transactions.get(producer_id, ())):
            producers = self._producers(group_id, partition)
            if committed:
                value = self.pending[group_id][partition][producer_id]
                self._commit(group_id, partition, value, producers[: producers.index(producer_id) + 1])
            else:
                self._forget_pending(group_id, partition, [producer_id])

    def records(self) -> Iterator[GroupRecord]:
        """Return records which make an empty store equal to this one."""
        for group_id, committed in self.by_group.items():
            for (topic, number), value in committed.items():
                yield GroupRecord(OffsetCommitKey(group_id, topic, number), value)
        for group_id, pending in self.pending.items():
            for (topic, number), waiting in pending.items():
                for producer_id, value in waiting.items():
                    yield GroupRecord(OffsetCommitKey(group_id, topic, number), value, producer_id)

    def _producers(self, group_id: str, partition: TopicPartition) -> list[ProducerId]:
        return list(self.pending.get(group_id, {}).get(partition, ()))

    def _commit(
        self, group_id: str, partition: TopicPartition, value: OffsetCommitValue, outdated: list[ProducerId]
    ) -> None:
        self.by_group.setdefault(group_id, {})[partition] = value
        self._forget_pending(group_id, partition, outdated)

    def _forget(self, group_id: str, partition: TopicPartition) -> None:
        committed = self.by_group.get(group_id, {})
        if committed.pop(partition, None) is not None and not committed:
            del self.by_group[group_id]

    def _forget_pending(self, group_id: str, partition: TopicPartition, producers: list[ProducerId]) -> None:
        for producer_id in producers:
            of_producer = self.open_transactions[producer_id]
            of_producer.remove((group_id, partition))
            if not of_producer:
                del self.open_transactions[producer_id]
            of_group = self.pending[group_id]
            of_partition = of_group[partition]
            del of_partition[producer_id]
            if not of_partition:
                del of_group[partition]
            if not of_group:
                del self.pending[group_id]
