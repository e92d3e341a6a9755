"""An image as records."""

from riverlog.metadata.draft import after
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from riverlog.metadata.snapshot import snapshot_records
from riverlog.model.internal_topics import OFFSETS_TOPIC
from tests.unit.metadata.cluster import cluster, topic_id, with_topic


def test_a_snapshot_makes_an_equal_image():
    image = with_topic(cluster("a", None), "orders", partitions=70, retention_ms="5")
    image = after(
        image,
        [
            PartitionChangeRecord(partition_id=69, topic_id=topic_id(1), leader=2, isr=(2,)),
            ConfigRecord(resource_type=4, resource_name="", name="max.connections", value="5"),
            ProducerIdsRecord(broker_id=1, next_producer_id=3000),
        ],
    )
    assert after(MetadataImage(), snapshot_records(image)) == image


def test_an_empty_image_needs_no_records():
    assert list(snapshot_records(MetadataImage())) == []


def test_the_metadata_version_comes_first():
    image = after(
        MetadataImage(),
        [FeatureLevelRecord(name="a", feature_level=1), FeatureLevelRecord(name="metadata.version", feature_level=30)],
    )
    assert [record.name for record in snapshot_records(image)] == ["metadata.version", "a"]  # type: ignore[union-attr]  # all are features


def test_a_snapshot_knows_which_internal_topics_are_lost():
    before = with_topic(with_topic(cluster("a"), "orders"), OFFSETS_TOPIC, number=2, partitions=3)
    lost = after(before, [RemoveTopicRecord(topic_id=topic_id(number)) for number in (1, 2)])
    assert lost.lost_topics == {OFFSETS_TOPIC: topic_id(2)}
    assert after(MetadataImage(), snapshot_records(lost)) == lost
    again = after(lost, [TopicRecord(name=OFFSETS_TOPIC, topic_id=topic_id(9))])
    assert again.lost_topics == {}
