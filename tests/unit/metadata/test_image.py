"""The view of the cluster's metadata."""

import pytest

from riverlog.metadata.draft import after
from riverlog.metadata.image import PARTITIONS_PER_CHUNK, ConfigResource, ConfigResourceType, MetadataImage
from riverlog.metadata.records import (
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from riverlog.metadata.snapshot import snapshot_records
from riverlog.model.ids import NodeId
from tests.unit.metadata.cluster import cluster, topic_id, with_topic


def test_a_view_does_not_change_under_its_holder():
    before = with_topic(cluster(None), "orders", partitions=2)
    changed = after(before, [PartitionChangeRecord(partition_id=1, topic_id=topic_id(1), leader=1)])
    orders_before, orders_after = before.topic("orders"), changed.topic("orders")
    assert orders_before is not None
    assert orders_after is not None
    assert [each.leader_epoch for each in orders_before.partitions] == [0, 0]
    assert [each.leader_epoch for each in orders_after.partitions] == [0, 1]


def test_topics_are_found_by_name_and_by_id():
    image = with_topic(with_topic(cluster(None), "b", number=1), "a", number=2)
    assert [topic.name for topic in image.all_topics()] == ["a", "b"]
    assert image.topic_by_id(topic_id(2)) is image.topic("a")
    assert image.topic_by_id(topic_id(9)) is None
    assert image.topic("c") is None


@pytest.mark.parametrize("count", [1, PARTITIONS_PER_CHUNK - 1, PARTITIONS_PER_CHUNK, PARTITIONS_PER_CHUNK * 2 + 5])
def test_partitions_are_numbered_without_gaps(count):
    topic = with_topic(cluster(None), "orders", partitions=count).topic("orders")
    assert topic is not None
    assert topic.partition_count == count
    assert [each.index for each in topic.partitions] == list(range(count))
    assert topic.partition(count - 1).replicas == (1,)
    for missing in (-1, count):
        with pytest.raises(IndexError):
            topic.partition(missing)


def test_a_change_touches_what_it_names_and_counts_up():
    image = with_topic(cluster(None, None), "orders")
    image = after(image, [PartitionChangeRecord(partition_id=0, topic_id=topic_id(1), isr=(2,))])
    topic = image.topic("orders")
    assert topic is not None
    partition = topic.partition(0)
    assert (partition.isr, partition.leader, partition.leader_epoch, partition.partition_epoch) == ((2,), 1, 0, 1)
    image = after(image, [PartitionChangeRecord(partition_id=0, topic_id=topic_id(1), leader=2, replicas=(2,))])
    topic = image.topic("orders")
    assert topic is not None
    partition = topic.partition(0)
    assert (partition.replicas, partition.leader, partition.leader_epoch, partition.partition_epoch) == ((2,), 2, 1, 2)


def test_equal_lists_of_replicas_are_one_object():
    topic = with_topic(cluster(None, None, None), "orders", partitions=200).topic("orders")
    assert topic is not None
    assert topic.partition(0).replicas == topic.partition(6).replicas
    assert topic.partition(0).replicas is topic.partition(6).replicas
    assert topic.partition(0).isr is topic.partition(0).replicas


def test_settings_go_with_their_topic():
    image = with_topic(cluster(None), "orders", retention_ms="5")
    assert dict(image.topic_overrides("orders")) == {"retention.ms": "5"}
    image = after(image, [RemoveTopicRecord(topic_id=topic_id(1))])
    assert dict(image.topic_overrides("orders")) == {}
    assert len(image.configs) == 0


def test_a_setting_without_value_is_gone():
    nodes = ConfigResource(ConfigResourceType.BROKER, "")
    image = after(MetadataImage(), [ConfigRecord(resource_type=4, resource_name="", name="max.connections", value="5")])
    assert dict(image.config(nodes)) == {"max.connections": "5"}
    image = after(image, [ConfigRecord(resource_type=4, resource_name="", name="max.connections")])
    assert dict(image.config(nodes)) == {}


def test_settings_of_types_that_mean_nothing_here_are_kept():
    metrics = ConfigRecord(resource_type=16, resource_name="s", name="interval.ms", value="5")
    image = after(MetadataImage(), [metrics, ConfigRecord(resource_type=8, resource_name="1", name="x", value="INFO")])
    assert metrics in list(snapshot_records(image))
    assert after(MetadataImage(), snapshot_records(image)) == image


def test_features_and_producer_ids():
    image = after(
        MetadataImage(),
        [
            FeatureLevelRecord(name="x", feature_level=3),
            ProducerIdsRecord(next_producer_id=1000),
            NoOpRecord(),
            ClearElrRecord(topic_name="orders"),
        ],
    )
    assert image.features == {"x": 3}
    assert image.next_producer_id == 1000
    with pytest.raises(AssertionError, match="never given out twice"):
        after(image, [ProducerIdsRecord(next_producer_id=999)])


def test_brokers_are_reached_by_listener():
    broker = cluster("a").brokers[NodeId(1)]
    endpoint = broker.endpoint("PLAINTEXT")
    assert endpoint is not None
    assert (endpoint.host, broker.rack, broker.fenced) == ("host-1", "a", False)
    assert broker.endpoint("OTHER") is None


@pytest.mark.parametrize(
    "record",
    [
        PartitionRecord(partition_id=0, topic_id=topic_id(5)),
        PartitionChangeRecord(partition_id=0, topic_id=topic_id(5)),
        RemoveTopicRecord(topic_id=topic_id(5)),
        TopicRecord(name="orders", topic_id=topic_id(6)),
        PartitionRecord(partition_id=3, topic_id=topic_id(1)),
    ],
)
def test_a_record_that_cannot_be_is_our_own_mistake(record):
    image = with_topic(cluster(None), "orders")
    with pytest.raises(AssertionError):
        after(image, [record])


def test_internal_topics_are_known():
    image = with_topic(with_topic(cluster(None), "orders"), "__consumer_offsets", number=2)
    assert [topic.is_internal for topic in image.all_topics()] == [True, False]
