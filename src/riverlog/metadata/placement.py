"""Where new replicas go: spread over racks, evenly over brokers, leaders evenly too.

The same input always gives the same placement. Brokers are taken in turn, one rack after the other, starting with
those that lead least; each partition begins one broker further on, so that every broker leads its share, and the
distance to the followers shifts each round, so that no two brokers share all their partitions.
"""

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from riverlog.metadata.image import BrokerImage, MetadataImage, ReplicaIds
from riverlog.model.ids import NodeId


def place(image: MetadataImage, *, partitions: int, replication_factor: int) -> list[ReplicaIds]:
    """Choose replicas for new partitions; the first of each is its leader."""
    brokers = usable_brokers(image)
    assert 1 <= replication_factor <= len(brokers)
    ring = _rack_by_rack(brokers, _led_partitions(image))
    return [_replicas(ring, number, replication_factor) for number in range(partitions)]


def usable_brokers(image: MetadataImage) -> list[BrokerImage]:
    """Return the brokers that can take partitions, by their number."""
    return [image.brokers[node_id] for node_id in sorted(image.brokers) if not image.brokers[node_id].fenced]


def _replicas(ring: Sequence[NodeId], number: int, replication_factor: int) -> ReplicaIds:
    count = len(ring)
    leader = number % count
    if replication_factor == 1:
        return (ring[leader],)
    shift = number // count % (count - 1)
    followers = (ring[(leader + 1 + (shift + each) % (count - 1)) % count] for each in range(replication_factor - 1))
    return (ring[leader], *followers)


def _rack_by_rack(brokers: Iterable[BrokerImage], led: dict[NodeId, int]) -> list[NodeId]:
    """Order brokers so that neighbours stand in different racks, as far as there are racks."""
    racks: dict[str, list[NodeId]] = {}
    for broker in sorted(brokers, key=lambda each: (led.get(each.id, 0), each.id)):
        racks.setdefault(broker.rack or "", []).append(broker.id)
    turns = zip_longest(*racks.values())
    return [node_id for turn in turns for node_id in turn if node_id is not None]


def _led_partitions(image: MetadataImage) -> dict[NodeId, int]:
    """Count the partitions that each broker leads; a cluster of one need not count."""
    if len(image.brokers) == 1:
        return {}
    led: dict[NodeId, int] = {}
    for topic in image.all_topics():
        for partition in topic.partitions:
            led[partition.leader] = led.get(partition.leader, 0) + 1
    return led
