"""Creating and deleting topics. The conversations are in tests/scenarios/metadata; here are the edges."""

import pytest

from riverlog.metadata.commands.topics import (
    CreateTopics,
    DeleteTopics,
    TopicCreation,
    TopicDefaults,
    check_topic_name,
    create_topics,
    delete_topics,
)
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.placement import BrokerLoad
from riverlog.model.checkpoint_topic import CHECKPOINTS_CONFIGS, CHECKPOINTS_TOPIC
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from riverlog.model.limits import PARTITIONS_PER_REQUEST_MAX
from riverlog.model.settings import SettingLayers
from tests.unit.metadata.cluster import DEFAULTS, cluster, topic_id, with_topic


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 249, "...", "_"])
def test_names_that_can_be(name):
    check_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "ä", "a\n", "a\0", "__cluster_metadata"])
def test_names_that_cannot_be(name):
    with pytest.raises(Refusal) as refused:
        check_topic_name(name)
    assert refused.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert refused.value.message.endswith(".")


def test_the_reply_describes_the_new_topic():
    new = TopicCreation("orders", topic_id(1), 3, configs={"retention.ms": "5"})
    records, reply = create_topics(cluster(None), CreateTopics((new,)), DEFAULTS, BrokerLoad())
    created = reply.topics[0]
    assert created.topic is not None
    assert (created.topic.partition_count, created.topic.replication_factor) == (3, 1)
    assert dict(created.configs) == {"retention.ms": "5"}
    assert len(records) == 5


def test_a_rehearsal_describes_and_writes_nothing():
    command = CreateTopics((TopicCreation("orders", topic_id(1)),), validate_only=True)
    records, reply = create_topics(cluster(None), command, DEFAULTS, BrokerLoad())
    assert records == []
    assert reply.topics[0].topic is not None


def test_defaults_are_the_nodes_and_replicas_as_many_as_fit():
    defaults = TopicDefaults(partitions=4, replication_factor=3)
    _, reply = create_topics(
        cluster(None, None), CreateTopics((TopicCreation("orders", topic_id(1)),)), defaults, BrokerLoad()
    )
    topic = reply.topics[0].topic
    assert topic is not None
    assert (topic.partition_count, topic.replication_factor) == (4, 2)


def test_as_long_as_nothing_is_replicated_one_replica_is_made_by_default_and_two_are_refused():
    defaults = TopicDefaults(partitions=1, replication_factor=3, replicas_max=1)
    wanted = (
        TopicCreation("a", topic_id(1)),
        TopicCreation("b", topic_id(2), replication_factor=2),
        TopicCreation("c", topic_id(3), assignments=((NodeId(1), NodeId(2)),)),
        TopicCreation("d", topic_id(4), replication_factor=3),
    )
    load = BrokerLoad(replicas_max=1)
    _, reply = create_topics(cluster(None, None), CreateTopics(wanted), defaults, load)
    first, *others = reply.topics
    assert first.topic is not None
    assert first.topic.replication_factor == 1
    why = "Replication of partitions is not there yet; use a replication factor of 1."
    assert [each.outcome.code for each in others] == [ErrorCode.INVALID_REPLICATION_FACTOR] * 3
    assert [each.outcome.message for each in others[:2]] == [why] * 2


def test_names_that_collide_within_one_request():
    command = CreateTopics((TopicCreation("a.b", topic_id(1)), TopicCreation("a_b", topic_id(2))))
    _, reply = create_topics(cluster(None), command, DEFAULTS, BrokerLoad())
    assert [each.outcome.code for each in reply.topics] == [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION]


def test_the_bound_counts_all_topics_of_a_request():
    half = PARTITIONS_PER_REQUEST_MAX // 2
    command = CreateTopics(tuple(TopicCreation(f"t{number}", topic_id(number), half) for number in range(1, 4)))
    _, reply = create_topics(cluster(None), command, DEFAULTS, BrokerLoad())
    assert [each.outcome.code for each in reply.topics] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.INVALID_PARTITIONS,
    ]


def test_a_setting_without_a_value_is_refused():
    command = CreateTopics((TopicCreation("orders", topic_id(1), configs={"retention.ms": None}),))
    _, reply = create_topics(cluster(None), command, DEFAULTS, BrokerLoad())
    assert reply.topics[0].outcome.code is ErrorCode.INVALID_CONFIG
    assert reply.topics[0].outcome.message == "retention.ms has no value."


def test_settings_are_checked_together_with_the_nodes():
    defaults = TopicDefaults(1, 1, SettingLayers(static={"log.cleaner.min.compaction.lag.ms": "10"}))
    command = CreateTopics((TopicCreation("orders", topic_id(1), configs={"max.compaction.lag.ms": "5"}),))
    _, reply = create_topics(cluster(None), command, defaults, BrokerLoad())
    assert reply.topics[0].outcome.code is ErrorCode.INVALID_CONFIG


def test_without_brokers_nothing_can_be_created():
    _, reply = create_topics(
        MetadataImage(), CreateTopics((TopicCreation("orders", topic_id(1)),)), DEFAULTS, BrokerLoad()
    )
    assert reply.topics[0].outcome.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_replicas_assigned_by_hand_stay_as_they_are():
    assigned = ((NodeId(2), NodeId(1)), (NodeId(1), NodeId(2)))
    command = CreateTopics((TopicCreation("orders", topic_id(1), assignments=assigned),))
    _, reply = create_topics(cluster(None, None), command, DEFAULTS, BrokerLoad())
    topic = reply.topics[0].topic
    assert topic is not None
    assert tuple(each.replicas for each in topic.partitions) == assigned
    assert [each.leader for each in topic.partitions] == [2, 1]


def test_a_topic_is_deleted_once():
    image = with_topic(cluster(None), "orders")
    records, reply = delete_topics(image, DeleteTopics((topic_id(1), topic_id(1), topic_id(9))))
    assert len(records) == 1
    codes = [outcome.code for outcome in reply.outcomes]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID]


def test_the_topic_of_checkpoints_gets_what_it_needs_whoever_asks_for_it():
    image = with_topic(cluster(None), CHECKPOINTS_TOPIC, partitions=-1)
    topic = image.topic(CHECKPOINTS_TOPIC)
    assert topic is not None
    assert (topic.partition_count, topic.is_internal) == (2, True)
    assert dict(image.topic_overrides(CHECKPOINTS_TOPIC)) == dict(CHECKPOINTS_CONFIGS)


@pytest.mark.parametrize(
    ("partitions", "configs", "code"),
    [
        (3, {}, ErrorCode.INVALID_PARTITIONS),
        (1, {}, ErrorCode.INVALID_PARTITIONS),
        (2, {"cleanup.policy": "delete"}, ErrorCode.INVALID_CONFIG),
        (2, {"cleanup.policy": "compact,delete"}, ErrorCode.INVALID_CONFIG),
        (2, {"max.message.bytes": "1000"}, ErrorCode.INVALID_CONFIG),
    ],
)
def test_the_topic_of_checkpoints_is_no_other(partitions, configs, code):
    new = TopicCreation(CHECKPOINTS_TOPIC, topic_id(1), partitions, configs=configs)
    records, reply = create_topics(cluster(None), CreateTopics((new,)), DEFAULTS, BrokerLoad())
    assert (records, reply.topics[0].outcome.code) == ([], code)
