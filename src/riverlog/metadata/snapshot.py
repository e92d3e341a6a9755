"""An image as records: applied to an empty image they make an equal one."""

from collections.abc import Iterator

from riverlog.metadata.features import METADATA_VERSION
from riverlog.metadata.image import MetadataImage, PartitionImage, TopicImage
from riverlog.metadata.node_records import broker_record, controller_record
from riverlog.metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from riverlog.model.ids import NO_NODE


def snapshot_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Return the records of a snapshot, metadata.version first: it says how the others are to be read."""
    for name, level in sorted(image.features.items(), key=lambda item: (item[0] != METADATA_VERSION, item[0])):
        yield FeatureLevelRecord(name=name, feature_level=level)
    for _node_id, broker in sorted(image.brokers.items()):
        yield broker_record(broker)
    for _node_id, controller in sorted(image.controllers.items()):
        yield controller_record(controller)
    for name, topic_id in sorted(image.lost_topics.items()):
        yield TopicRecord(name=name, topic_id=topic_id)
        yield RemoveTopicRecord(topic_id=topic_id)
    for topic in image.all_topics():
        yield TopicRecord(name=topic.name, topic_id=topic.id)
        for partition in topic.partitions:
            yield _partition(topic, partition)
    for key, values in image.configs.items():
        type_, _, name = key.partition("/")
        for setting, value in sorted(values.items()):
            yield ConfigRecord(resource_type=int(type_), resource_name=name, name=setting, value=value)
    if image.next_producer_id:
        yield ProducerIdsRecord(broker_id=NO_NODE, next_producer_id=image.next_producer_id)
    yield from (record for _key, record in image.access.items())


def _partition(topic: TopicImage, partition: PartitionImage) -> PartitionRecord:
    rare = partition.rare
    return PartitionRecord(
        partition_id=partition.index,
        topic_id=topic.id,
        replicas=partition.replicas,
        isr=partition.isr,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=partition.directories,
        adding_replicas=rare.adding_replicas,
        removing_replicas=rare.removing_replicas,
        eligible_leader_replicas=rare.eligible_leader_replicas or None,
        last_known_elr=rare.last_known_elr or None,
        leader_recovery_state=rare.leader_recovery_state,
    )
