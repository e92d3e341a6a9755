"""Where new replicas go: spread over racks, evenly over brokers, leaders evenly too.

The same input always gives the same placement. Brokers are taken in turn, one rack after the other, starting with
those that lead least; each partition begins one broker further on, so that every broker leads its share, and the
distance to the followers shifts each round, of all partitions that there are, so that no two brokers share all their
partitions: what one of them led is spread over the others when it goes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from uuid import UUID

from riverlog.metadata.image import BrokerImage, MetadataImage, ReplicaIds
from riverlog.metadata.records import MetadataRecord, PartitionRecord
from riverlog.model.ids import NodeId


@dataclass(slots=True)
class BrokerLoad:
    """How many partitions each broker leads, and who is about to go."""

    led: dict[NodeId, int] = field(default_factory=dict)
    leaving: frozenset[NodeId] = frozenset()
    replicas_max: int | None = None
    """How many replicas a partition may have; None for as many as there are brokers."""

    def add(self, records: Iterable[MetadataRecord]) -> None:
        """Note new partitions with their leaders."""
        for record in records:
            if isinstance(record, PartitionRecord):
                leader = NodeId(record.leader)
                self.led[leader] = self.led.get(leader, 0) + 1


def place(image: MetadataImage, load: BrokerLoad, *, partitions: int, replication_factor: int) -> list[ReplicaIds]:
    """Choose replicas for new partitions; the first of each is its leader."""
    brokers = usable_brokers(image, load)
    assert 1 <= replication_factor <= len(brokers)
    ring = _rack_by_rack(brokers, load.led)
    racks = {broker.id: broker.rack or "" for broker in brokers}
    rounds = sum(load.led.values()) // len(ring)
    return [
        _replicas(ring, racks, number % len(ring), rounds + number // len(ring), replication_factor)
        for number in range(partitions)
    ]


def usable_brokers(image: MetadataImage, load: BrokerLoad) -> list[BrokerImage]:
    """Return the brokers that can take partitions, by their number."""
    brokers = (image.brokers[node_id] for node_id in sorted(image.brokers) if node_id not in load.leaving)
    return [each for each in brokers if each.is_active and open_directories(each) is not None]


def open_directories(broker: BrokerImage) -> tuple[UUID, ...] | None:
    """Return the directories in which a broker takes new replicas; None where all of them are cordoned."""
    cordoned = broker.cordoned_log_dirs
    if not cordoned:
        return broker.log_dirs
    return tuple(each for each in broker.log_dirs if each not in cordoned) or None


def _replicas(
    ring: Sequence[NodeId], racks: Mapping[NodeId, str], first: int, rounds: int, replication_factor: int
) -> ReplicaIds:
    """Return the replicas of one partition: as many racks as there are, and only then a rack twice."""
    count = len(ring)
    if replication_factor == 1:
        return (ring[first],)
    shift = rounds % (count - 1)
    others = [ring[(first + 1 + (shift + each) % (count - 1)) % count] for each in range(count - 1)]
    taken, seen = [ring[first]], {racks[ring[first]]}
    for node_id in others:
        if racks[node_id] not in seen:
            taken.append(node_id)
            seen.add(racks[node_id])
    taken += [node_id for node_id in others if node_id not in taken]
    return tuple(taken[:replication_factor])


def _rack_by_rack(brokers: Iterable[BrokerImage], led: dict[NodeId, int]) -> list[NodeId]:
    """Order brokers so that neighbours stand in different racks, as far as there are racks."""
    racks: dict[str, list[NodeId]] = {}
    for broker in sorted(brokers, key=lambda each: (led.get(each.id, 0), each.id)):
        racks.setdefault(broker.rack or "", []).append(broker.id)
    turns = zip_longest(*racks.values())
    return [node_id for turn in turns for node_id in turn if node_id is not None]
