"""What some records changed."""

from riverlog.metadata.commands.topics import CreateTopics, TopicCreation, create_topics
from riverlog.metadata.delta import MetadataDelta, delta_between, delta_of
from riverlog.metadata.draft import after
from riverlog.metadata.image import ConfigResourceType, MetadataImage
from riverlog.metadata.placement import BrokerLoad
from riverlog.metadata.records import (
    ClearElrRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.unit.metadata.cluster import DEFAULTS, cluster, topic_id, with_topic


def delta(before: MetadataImage, *records: MetadataRecord) -> MetadataDelta:
    return delta_of(before, after(before, records), records)


def names(topics) -> list[str]:
    return [topic.name for topic in topics]


def test_a_new_topic_is_created_and_nothing_else():
    before = cluster(None)
    new = TopicCreation("orders", topic_id(1), 3, configs={"retention.ms": "5"})
    records, _ = create_topics(before, CreateTopics((new,)), DEFAULTS, BrokerLoad())
    change = delta(before, *records)
    assert names(change.created) == ["orders"]
    assert (change.changed, change.deleted, change.configured, change.nodes_configured) == ((), (), (), False)
    assert change.image.topic("orders") == change.created[0]


def test_a_deleted_topic_is_given_as_it_was():
    before = with_topic(cluster(None), "orders", partitions=2)
    change = delta(before, RemoveTopicRecord(topic_id=topic_id(1)))
    assert change.deleted == (before.topic("orders"),)
    assert change.changed == ()


def test_a_topic_that_came_and_went_is_not_mentioned():
    before = cluster(None)
    records, _ = create_topics(before, CreateTopics((TopicCreation("brief", topic_id(1)),)), DEFAULTS, BrokerLoad())
    change = delta(before, *records, RemoveTopicRecord(topic_id=topic_id(1)))
    assert (change.created, change.deleted, change.changed) == ((), (), ())


def test_changed_leaders_and_settings_are_told_apart():
    before = with_topic(with_topic(cluster(None), "orders", number=1), "bills", number=2)
    change = delta(
        before,
        PartitionChangeRecord(partition_id=0, topic_id=topic_id(1), leader=1),
        ConfigRecord(resource_type=2, resource_name="bills", name="retention.ms", value="5"),
    )
    assert names(change.changed) == ["orders"]
    assert names(change.configured) == ["bills"]
    assert not change.nodes_configured


def test_settings_of_nodes_are_told():
    change = delta(cluster(None), ConfigRecord(resource_type=4, resource_name="", name="max.connections", value="5"))
    assert change.nodes_configured
    assert change.configured == ()


def test_settings_of_groups_are_not_those_of_nodes():
    record = ConfigRecord(resource_type=32, resource_name="g", name="consumer.session.timeout.ms", value="50000")
    change = delta(cluster(None), record)
    assert (change.groups_configured, change.nodes_configured, change.configured) == (True, False, ())
    assert change.image.group_overrides("g") == {"consumer.session.timeout.ms": "50000"}
    assert list(change.image.configured(ConfigResourceType.GROUP)) == ["g"]


def test_topics_whose_eligible_leaders_are_cleared_have_changed():
    """Their partition epochs have grown, which their leaders must know."""
    before = with_topic(with_topic(cluster(None), "orders", number=1), "bills", number=2)
    before = after(before, [PartitionChangeRecord(0, topic_id(1), last_known_elr=(1,))])
    for record in (ClearElrRecord("orders"), ClearElrRecord()):
        assert names(delta(before, record).changed) == ["orders"]
    assert delta(before, ClearElrRecord("bills")).changed == ()
    assert delta(before, ClearElrRecord("unknown")).changed == ()


def test_partitions_that_moved_are_named_and_those_in_sync_are_not():
    before = with_topic(cluster(None, None), "orders", partitions=70)
    change = delta(
        before,
        PartitionChangeRecord(partition_id=0, topic_id=topic_id(1), isr=(1,)),
        PartitionChangeRecord(partition_id=3, topic_id=topic_id(1), leader=2),
        PartitionChangeRecord(partition_id=66, topic_id=topic_id(1), replicas=(2,)),
    )
    assert [(topic.name, indexes) for topic, indexes in change.moved] == [("orders", (3, 66))]
    assert (names(change.changed), change.grown) == (["orders"], ())
    in_sync = delta(before, PartitionChangeRecord(partition_id=0, topic_id=topic_id(1), isr=(1,)))
    assert (names(in_sync.changed), in_sync.moved, in_sync.grown) == (["orders"], (), ())


def test_a_leader_that_leads_again_in_another_epoch_has_moved():
    before = with_topic(cluster(None), "orders")
    change = delta(before, PartitionChangeRecord(partition_id=0, topic_id=topic_id(1), leader=1))
    assert [indexes for _topic, indexes in change.moved] == [(0,)]


def test_a_topic_with_more_partitions_has_grown_and_none_of_them_moved():
    before = with_topic(cluster(None), "orders", partitions=64)
    grown = PartitionRecord(partition_id=64, topic_id=topic_id(1), replicas=(1,), isr=(1,), leader=1)
    change = delta(before, grown)
    assert (names(change.grown), change.moved, change.created) == (["orders"], (), ())


def test_two_images_differ_as_the_records_between_them_say():
    before = with_topic(with_topic(cluster(None), "orders", number=1), "bills", number=2)
    records = [
        RemoveTopicRecord(topic_id=topic_id(2)),
        TopicRecord("bills", topic_id(3)),
        PartitionRecord(partition_id=0, topic_id=topic_id(3), replicas=(1,), isr=(1,), leader=1),
        PartitionChangeRecord(partition_id=0, topic_id=topic_id(1), leader=1),
        ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="5"),
        ConfigRecord(resource_type=4, resource_name="", name="max.connections", value="5"),
        ConfigRecord(resource_type=32, resource_name="g", name="consumer.session.timeout.ms", value="50000"),
    ]
    now = after(before, records)
    assert delta_between(before, now) == delta_of(before, now, records)
    same = with_topic(with_topic(cluster(None), "orders", number=1), "bills", number=2)
    assert delta_between(before, same) == MetadataDelta(same, nodes_configured=True, groups_configured=True)
