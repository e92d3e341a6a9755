"""Which partitions each broker is in sync on, may lead and leads: so that nobody walks over all of them to find those.

The partitions of a topic are the bits of one number, so that a million of them are small and quickly changed. A machine
that needs no index keeps none; one that does makes it from its image once and changes it with each record.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from riverlog.metadata.image import PARTITIONS_PER_CHUNK, MetadataImage, PartitionState, TopicImage
from riverlog.metadata.topic_draft import rare_state
from riverlog.model.ids import NO_NODE, NodeId

Partitions = dict[str, int]
"""Partitions by the names of their topics: bit n of the number stands for partition n."""


@dataclass(slots=True)
class BrokerIndex:
    """The partitions of each broker, and those that want a leader."""

    in_sync: dict[NodeId, Partitions] = field(default_factory=dict)
    eligible: dict[NodeId, Partitions] = field(default_factory=dict)
    """Where brokers are eligible leaders out of sync (KIP-966)."""
    led: dict[NodeId, int] = field(default_factory=dict)
    """How many partitions each broker leads."""
    leaderless: Partitions = field(default_factory=dict)
    unpreferred: Partitions = field(default_factory=dict)
    """Partitions that are led by another broker than the first of their replicas."""
    reassigning: Partitions = field(default_factory=dict)

    @classmethod
    def of(cls, image: MetadataImage) -> "BrokerIndex":
        """Return the index of all partitions."""
        index = cls()
        index.follow(MetadataImage(), image)
        return index

    def follow(self, before: MetadataImage, after: MetadataImage) -> None:
        """Become the index of another image, however the two came about; it costs what is different between them."""
        for name, was, now in before.topics.differences(after.topics):
            if was is not None and (now is None or now.id != was.id or now.partition_count < was.partition_count):
                self.remove(was)
                was = None
            if now is not None:
                for number, old, new in _changes(was, now):
                    self.change(name, number, old, new)

    def remove(self, topic: TopicImage) -> None:
        """Forget all partitions of a topic."""
        name = topic.name
        for per_broker in (self.in_sync, self.eligible):
            for node_id in [each for each, partitions in per_broker.items() if name in partitions]:
                _drop(per_broker, node_id, name)
        for partitions in (self.leaderless, self.unpreferred, self.reassigning):
            partitions.pop(name, None)
        for _number, state in _states(topic):
            self._count(state[2], -1)

    def change(self, name: str, number: int, before: PartitionState | None, after: PartitionState) -> None:
        """Note what a partition is now, and was before."""
        bit, replicas, isr, leader = 1 << number, after[0], after[1], after[2]
        old_replicas, old_isr, old_leader = ((), (), None) if before is None else before[:3]
        if isr is not old_isr:
            _move(self.in_sync, name, bit, old_isr, isr)
        if leader != old_leader:
            if old_leader is not None:
                self._count(old_leader, -1)
            self._count(leader, 1)
            _mark(self.leaderless, name, bit, is_so=leader == NO_NODE)
        if leader != old_leader or replicas is not old_replicas:
            _mark(self.unpreferred, name, bit, is_so=leader not in (NO_NODE, replicas[0]) if replicas else False)
        if len(after) > 6 or (before is not None and len(before) > 6):
            self._change_rare(name, bit, before, after)

    def leads(self, node_id: NodeId) -> bool:
        """Return whether a broker leads any partition."""
        return self.led.get(node_id, 0) > 0

    def _change_rare(self, name: str, bit: int, before: PartitionState | None, after: PartitionState) -> None:
        rare = rare_state(after)
        old_eligible = () if before is None else rare_state(before).eligible_leader_replicas
        _move(self.eligible, name, bit, old_eligible, rare.eligible_leader_replicas)
        _mark(self.reassigning, name, bit, is_so=bool(rare.adding_replicas or rare.removing_replicas))

    def _count(self, leader: NodeId, change: int) -> None:
        if leader == NO_NODE:
            return
        led = self.led.get(leader, 0) + change
        if led:
            self.led[leader] = led
        else:
            del self.led[leader]


def each_partition(partitions: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """Return the topic and the number of each partition."""
    for name, bits in partitions:
        first = 0
        while bits:
            word = bits & _WORD  # a long number is taken apart in pieces: each step on it copies it
            while word:
                lowest = word & -word
                yield name, first + lowest.bit_length() - 1
                word ^= lowest
            bits >>= _WORD_BITS
            first += _WORD_BITS


_WORD_BITS = 1024
_WORD = (1 << _WORD_BITS) - 1


def _changes(
    before: TopicImage | None, after: TopicImage
) -> Iterator[tuple[int, PartitionState | None, PartitionState]]:
    """Return the partitions that are others than before."""
    chunks = () if before is None else before.chunks
    for number, chunk in enumerate(after.chunks):
        known = chunks[number] if number < len(chunks) else ()
        if chunk is known:
            continue
        for row, state in enumerate(chunk):
            was = known[row] if row < len(known) else None
            if state is not was:
                yield number * PARTITIONS_PER_CHUNK + row, was, state


def _states(topic: TopicImage) -> Iterator[tuple[int, PartitionState]]:
    return enumerate(state for chunk in topic.chunks for state in chunk)


def _move(
    per_broker: dict[NodeId, Partitions], name: str, bit: int, before: tuple[NodeId, ...], after: tuple[NodeId, ...]
) -> None:
    """Note that a partition has other brokers than before."""
    for node_id in before:
        if node_id not in after:
            left = per_broker[node_id][name] & ~bit
            if left:
                per_broker[node_id][name] = left
            else:
                _drop(per_broker, node_id, name)
    for node_id in after:
        if node_id not in before:
            partitions = per_broker.setdefault(node_id, {})
            partitions[name] = partitions.get(name, 0) | bit


def _mark(partitions: Partitions, name: str, bit: int, *, is_so: bool) -> None:
    """Note whether something is so for a partition."""
    if is_so:
        partitions[name] = partitions.get(name, 0) | bit
    elif name in partitions:
        left = partitions[name] & ~bit
        if left:
            partitions[name] = left
        else:
            del partitions[name]


def _drop(per_broker: dict[NodeId, Partitions], node_id: NodeId, name: str) -> None:
    del per_broker[node_id][name]
    if not per_broker[node_id]:
        del per_broker[node_id]
