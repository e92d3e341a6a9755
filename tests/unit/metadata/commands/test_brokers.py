"""Brokers joining the cluster."""

from riverlog.metadata.commands.brokers import register_broker
from riverlog.metadata.features import SUPPORTED_FEATURES
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.records import FeatureLevelRecord, PartitionChangeRecord, RegisterBrokerRecord
from tests.unit.metadata.cluster import cluster, registration, with_topic


def test_a_metadata_log_begins_with_its_version():
    records, reply = register_broker(MetadataImage(), registration(1))
    *features, registered = records
    assert [each.name for each in features if isinstance(each, FeatureLevelRecord)] == list(SUPPORTED_FEATURES)
    assert next(iter(SUPPORTED_FEATURES)) == "metadata.version"
    assert isinstance(registered, RegisterBrokerRecord)
    assert reply.epoch == 0


def test_every_start_is_a_new_epoch():
    image = cluster(None)
    records, reply = register_broker(image, registration(1))
    assert reply.epoch == 1
    assert [type(record) for record in records] == [RegisterBrokerRecord]


def test_after_a_crash_what_the_broker_leads_begins_a_new_leader_epoch():
    image = with_topic(cluster(None, None), "orders", partitions=4)
    records, _ = register_broker(image, registration(1, clean=False))
    changes = [record for record in records if isinstance(record, PartitionChangeRecord)]
    assert [change.partition_id for change in changes] == [0, 2]
    topic = image.after_all(records).topic("orders")
    assert topic is not None
    assert [each.leader_epoch for each in topic.partitions] == [1, 0, 1, 0]


def test_what_nobody_leads_is_led_by_the_one_in_sync() -> None:
    """At its own stop Apache Kafka leaves partitions without a leader; the node that comes back takes them."""
    image = with_topic(cluster(None, None), "orders", partitions=2)
    topic = image.topic("orders")
    assert topic is not None
    image = image.after(PartitionChangeRecord(partition_id=0, topic_id=topic.id, leader=-1))
    records, _ = register_broker(image, registration(1, clean=True))
    changes = [record for record in records if isinstance(record, PartitionChangeRecord)]
    assert [(change.partition_id, change.leader) for change in changes] == [(0, 1)]


def test_a_lone_replica_is_eligible_however_empty_its_in_sync_set() -> None:
    """Apache Kafka 4.3 leaves a partition so when its only broker stops."""
    image = with_topic(cluster(None), "orders", partitions=1)
    topic = image.topic("orders")
    assert topic is not None
    image = image.after(
        PartitionChangeRecord(partition_id=0, topic_id=topic.id, leader=-1, isr=(), eligible_leader_replicas=(1,))
    )
    records, _ = register_broker(image, registration(1, clean=True))
    topic = image.after_all(records).topic("orders")
    assert topic is not None
    partition = topic.partition(0)
    assert (partition.leader, partition.isr) == (1, (1,))
