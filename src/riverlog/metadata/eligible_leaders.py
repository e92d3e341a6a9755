"""What a new `min.insync.replicas` means for eligible leaders (KIP-966).

They are eligible since nothing was committed without them while fewer than the old number were in sync. With another
number that may not hold from the next commit on, so they are forgotten where there is a leader, who commits. Where
there is none, nothing is committed, and they are all that there is.
"""

from collections.abc import Iterable

from riverlog.metadata.broker_index import BrokerIndex, each_partition
from riverlog.metadata.features import MIN_IN_SYNC
from riverlog.metadata.image import ConfigResourceType, MetadataImage
from riverlog.metadata.records import ClearElrRecord, ConfigRecord, MetadataRecord, PartitionChangeRecord


def forgotten_eligible(
    image: MetadataImage, index: BrokerIndex, records: Iterable[MetadataRecord]
) -> list[MetadataRecord]:
    """Return what follows for eligible leaders from changed settings."""
    if not image.keeps_eligible:
        return []
    changed = [each for each in records if isinstance(each, ConfigRecord) and each.name == MIN_IN_SYNC]
    topics = {each.resource_name for each in changed if each.resource_type == ConfigResourceType.TOPIC}
    everywhere = any(each.resource_type == ConfigResourceType.BROKER for each in changed)
    eligible: dict[str, int] = {}
    for partitions in index.eligible.values():
        for name, bits in partitions.items():
            if everywhere or name in topics:
                eligible[name] = eligible.get(name, 0) | bits
    forgotten: list[MetadataRecord] = []
    for name, bits in sorted(eligible.items()):
        leaderless = bits & index.leaderless.get(name, 0)
        if not leaderless:
            forgotten.append(ClearElrRecord(topic_name=name))
            continue
        topic = image.topic(name)
        assert topic is not None, f"the index has {name}, and there is no such topic"
        forgotten += [
            PartitionChangeRecord(partition_id=number, topic_id=topic.id, eligible_leader_replicas=())
            for _name, number in each_partition([(name, bits & ~leaderless)])
        ]
    return forgotten
