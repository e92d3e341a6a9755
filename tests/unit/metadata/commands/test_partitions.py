"""Adding partitions."""

from collections import Counter

import pytest

from riverlog.metadata.commands.partitions import (
    UNASSIGNED_DIRECTORY,
    CreatePartitions,
    NewPartitions,
    create_partitions,
    directory_for,
    partition_records,
    replication_factor_of,
)
from riverlog.metadata.commands.topics import CreateTopics, TopicCreation
from riverlog.metadata.draft import after
from riverlog.metadata.placement import BrokerLoad
from riverlog.metadata.records import PartitionRecord, RegisterBrokerRecord
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from riverlog.model.internal_topics import OFFSETS_TOPIC
from riverlog.model.limits import PARTITIONS_PER_REQUEST_MAX
from tests.unit.metadata.active_cluster import ActiveCluster
from tests.unit.metadata.cluster import cluster, topic_id, with_topic


def outcome_of(new: NewPartitions) -> tuple[ErrorCode, int]:
    image = with_topic(cluster(None, None), "orders", partitions=2)
    records, reply = create_partitions(image, CreatePartitions((new,)), BrokerLoad())
    return reply.outcomes[0].code, len(records)


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (NewPartitions("orders", 5), (ErrorCode.NONE, 3)),
        (NewPartitions("orders", 2), (ErrorCode.INVALID_PARTITIONS, 0)),
        (NewPartitions("orders", 1), (ErrorCode.INVALID_PARTITIONS, 0)),
        (NewPartitions("orders", -1), (ErrorCode.INVALID_PARTITIONS, 0)),
        (NewPartitions("orders", PARTITIONS_PER_REQUEST_MAX + 3), (ErrorCode.INVALID_PARTITIONS, 0)),
        (NewPartitions("bills", 5), (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)),
        (NewPartitions("orders", 3, ((NodeId(2), NodeId(1)),)), (ErrorCode.NONE, 1)),
        (NewPartitions("orders", 3, ()), (ErrorCode.INVALID_REPLICA_ASSIGNMENT, 0)),
        (NewPartitions("orders", 3, ((),)), (ErrorCode.INVALID_REPLICA_ASSIGNMENT, 0)),
        (NewPartitions("orders", 3, ((NodeId(1),),)), (ErrorCode.INVALID_REPLICA_ASSIGNMENT, 0)),
        (NewPartitions("orders", 3, ((NodeId(1), NodeId(1)),)), (ErrorCode.INVALID_REPLICA_ASSIGNMENT, 0)),
        (NewPartitions("orders", 3, ((NodeId(1), NodeId(7)),)), (ErrorCode.INVALID_REPLICA_ASSIGNMENT, 0)),
    ],
)
def test_more_partitions_and_only_more(new, expected):
    assert outcome_of(new) == expected


def test_as_long_as_nothing_is_replicated_what_has_replicas_gets_no_more_partitions():
    image = with_topic(cluster(None, None), "orders", partitions=2)
    wanted = (NewPartitions("orders", 3),)
    records, reply = create_partitions(image, CreatePartitions(wanted), BrokerLoad(replicas_max=1))
    assert (records, reply.outcomes[0].code) == ([], ErrorCode.INVALID_REPLICATION_FACTOR)


def test_brokers_that_take_turns_fill_all_of_their_directories():
    cluster = ActiveCluster(None, None, replicas_max=1)
    cluster.do(CreateTopics((TopicCreation("orders", topic_id(7), 6),)))
    cluster.do(CreatePartitions((NewPartitions("orders", 12),)))
    orders = cluster.machine.image.topic("orders")
    assert orders is not None
    placed = Counter((each.leader, each.directories[0]) for each in orders.partitions)
    assert sorted(placed.values()) == [3, 3, 3, 3], "two brokers with two directories each"


def test_an_internal_topic_keeps_its_partitions():
    image = with_topic(cluster(None), OFFSETS_TOPIC, partitions=2)
    records, reply = create_partitions(image, CreatePartitions((NewPartitions(OFFSETS_TOPIC, 3),)), BrokerLoad())
    assert (records, reply.outcomes[0].code) == ([], ErrorCode.INVALID_REQUEST)


def test_a_decrease_says_why():
    image = with_topic(cluster(None), "orders", partitions=2)
    _, reply = create_partitions(image, CreatePartitions((NewPartitions("orders", 1),)), BrokerLoad())
    assert reply.outcomes[0].message == (
        "The topic 'orders' has 2 partitions and cannot have fewer: taking some away would lose their records."
    )


def test_one_request_names_a_topic_once():
    image = with_topic(cluster(None), "orders")
    command = CreatePartitions((NewPartitions("orders", 2), NewPartitions("orders", 3)))
    records, reply = create_partitions(image, command, BrokerLoad())
    assert records == []
    assert {outcome.code for outcome in reply.outcomes} == {ErrorCode.INVALID_REQUEST}


def test_a_rehearsal_writes_nothing():
    image = with_topic(cluster(None), "orders")
    records, reply = create_partitions(
        image, CreatePartitions((NewPartitions("orders", 2),), validate_only=True), BrokerLoad()
    )
    assert (records, reply.outcomes[0].code) == ([], ErrorCode.NONE)


@pytest.mark.parametrize(("wanted", "expected"), [(-1, 2), (1, 1), (2, 2)])
def test_the_replication_factor(wanted, expected):
    assert replication_factor_of(cluster(None, None), BrokerLoad(), wanted, 3) == expected


@pytest.mark.parametrize("wanted", [0, -2, 3, 32_767])
def test_a_replication_factor_that_cannot_be(wanted):
    with pytest.raises(Refusal) as refused:
        replication_factor_of(cluster(None, None), BrokerLoad(), wanted, 3)
    assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_topics_partitions_go_round_the_directories():
    image = cluster(None)
    (one,) = partition_records(image, topic_id(1), [(NodeId(1),)], BrokerLoad(), first=0)
    assert isinstance(one, PartitionRecord)
    assert one.directories == image.brokers[NodeId(1)].log_dirs
    image = after(image, [RegisterBrokerRecord(broker_id=1, fenced=False, log_dirs=(topic_id(5), topic_id(6)))])
    several = partition_records(image, topic_id(1), [(NodeId(1),)] * 3, BrokerLoad(), first=0)
    assert [each.directories for each in several if isinstance(each, PartitionRecord)] == [
        (topic_id(6),),
        (topic_id(5),),
        (topic_id(6),),
    ]


def test_the_directory_of_a_broker_that_named_none_is_not_known_yet():
    assert directory_for((), topic_id(1), 0) == UNASSIGNED_DIRECTORY
