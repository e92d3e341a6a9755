"""The admin: what it asks, whom it asks, and what it makes of the answers."""

import re
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from riverlog.client.admin.admin import Admin, ConfigSource, NewTopic
from riverlog.client.consumer.commits import CommittedOffset
from riverlog.client.errors import KafkaError, PartlyFailed
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset, TopicPartition
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_partitions import CreatePartitionsResponse, CreatePartitionsTopicResult
from riverlog.wire.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from riverlog.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from riverlog.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from riverlog.wire.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from riverlog.wire.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from riverlog.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from riverlog.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from tests.support.brokers import FakeCluster


def create_topics(request: CreateTopicsRequest, _node: int) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(
                name=topic.name,
                topic_id=UUID(int=5),
                num_partitions=max(topic.num_partitions, 1),
                replication_factor=1,
                error_code=ErrorCode.INVALID_TOPIC_EXCEPTION if "!" in topic.name else 0,
                error_message="no exclamation marks" if "!" in topic.name else None,
            )
            for topic in request.topics
        ]
    )


async def test_a_topic_is_created_by_the_controller() -> None:
    cluster = FakeCluster(nodes=2)
    cluster.handlers[ApiKey.CREATE_TOPICS] = create_topics
    async with Admin("node2:9092", ports=cluster.ports) as admin:
        created = await admin.create_topic("orders", partitions=3, configs={"retention.ms": "1000"})
        assert (created.name, created.topic_id, created.partitions) == ("orders", UUID(int=5), 3)
        await admin.create_topics([NewTopic("placed", assignments=[[1, 2], [2, 1]])], validate_only=True)
    first, second = cluster.asked(ApiKey.CREATE_TOPICS)
    assert {node for node, key, *_ in cluster.requests if key is ApiKey.CREATE_TOPICS} == {1}
    assert [(config.name, config.value) for config in first.topics[0].configs] == [("retention.ms", "1000")]
    assert first.topics[0].replication_factor == -1
    assert second.validate_only
    assert [entry.broker_ids for entry in second.topics[0].assignments] == [[1, 2], [2, 1]]
    assert second.topics[0].num_partitions == -1


async def test_one_failure_of_one_is_raised_as_it_is_and_some_of_many_together() -> None:
    cluster = FakeCluster()
    cluster.handlers[ApiKey.CREATE_TOPICS] = create_topics
    async with Admin(cluster.bootstrap, ports=cluster.ports) as admin:
        with pytest.raises(KafkaError, match=r"topic 'a!': no exclamation marks") as raised:
            await admin.create_topic("a!")
        assert raised.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
        with pytest.raises(PartlyFailed, match="1 of 2 failed") as partly:
            await admin.create_topics([NewTopic("a!"), NewTopic("b")])
        assert set(partly.value.failures) == {"a!"}


async def test_a_controller_that_moved_is_found_and_asked_again() -> None:
    cluster = FakeCluster(nodes=2)
    codes = [ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NONE]

    def answer(request: DeleteTopicsRequest, _node: int) -> DeleteTopicsResponse:
        code = codes.pop(0)
        return DeleteTopicsResponse(
            responses=[DeletableTopicResult(name=topic.name, error_code=code) for topic in request.topics]
        )

    cluster.handlers[ApiKey.DELETE_TOPICS] = answer
    async with Admin(cluster.bootstrap, ports=cluster.ports) as admin:
        await admin.delete_topics("orders")
        assert codes == []
        codes += [ErrorCode.NOT_CONTROLLER] * 9
        with pytest.raises(KafkaError):
            await admin.delete_topics(["orders"])
        assert len(codes) == 4, "five attempts, not more"


async def test_topics_are_listed_and_described() -> None:
    cluster = FakeCluster(nodes=2)
    cluster.create_topic("orders", 3)
    cluster.create_topic("items")
    async with Admin(cluster.bootstrap, ports=cluster.ports) as admin:
        assert [topic.name for topic in await admin.list_topics()] == ["items", "orders"]
        orders, items = await admin.describe_topics(["orders", "items"])
        assert [partition.leader for partition in orders.partitions] == [1, 2, 1]
        assert items.name == "items"
        with pytest.raises(KafkaError) as raised:
            await admin.describe_topics("unknown")
        assert raised.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert "unknown" not in cluster.topics, "asking must not create"


async def test_partitions_are_added() -> None:
    cluster = FakeCluster()
    code = ErrorCode.INVALID_PARTITIONS
    cluster.handlers[ApiKey.CREATE_PARTITIONS] = lambda request, _: CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name="orders", error_code=code if request.topics[0].count < 3 else 0, error_message="too few"
            )
        ]
    )
    async with Admin(cluster.bootstrap, ports=cluster.ports) as admin:
        await admin.create_partitions("orders", 5)
        with pytest.raises(KafkaError, match="too few"):
            await admin.create_partitions("orders", 1)


async def test_settings_of_a_broker_are_asked_of_that_broker() -> None:
    cluster = FakeCluster(nodes=3)
    entry = DescribeConfigsResourceResult(name="retention.ms", value="5", config_source=1, documentation="how long")
    odd = DescribeConfigsResourceResult(name="new", value=None, config_source=77, is_sensitive=True)
    cluster.handlers[ApiKey.DESCRIBE_CONFIGS] = lambda *_: DescribeConfigsResponse(
        results=[DescribeConfigsResult(configs=[entry, odd])]
    )
    async with Admin(cluster.bootstrap, ports=cluster.ports) as admin:
        found = await admin.describe_configs(broker=3)
        assert cluster.requests[-1][0] == 3
        assert (found["retention.ms"].value, found["retention.ms"].source) == ("5", ConfigSource.TOPIC)
        assert (found["new"].source, found["new"].sensitive) == (ConfigSource.UNKNOWN, True)
        await admin.describe_configs(topic="orders", names=["retention.ms"])
        resource = cluster.asked(ApiKey.DESCRIBE_CONFIGS)[-1].resources[0]
        assert (resource.resource_type, resource.resource_name) == (2, "orders")
        assert resource.configuration_keys == ["retention.ms"]
        with pytest.raises(ValueError, match="either a topic or a broker"):
            await admin.describe_configs()


async def test_settings_are_changed_one_by_one() -> None:
    cluster = FakeCluster()
    answers = [(0, None), (ErrorCode.INVALID_CONFIG, "no such setting")]
    cluster.handlers[ApiKey.INCREMENTAL_ALTER_CONFIGS] = lambda *_: IncrementalAlterConfigsResponse(
        responses=[AlterConfigsResourceResponse(error_code=answers[0][0], error_message=answers.pop(0)[1])]
    )
    async with Admin(cluster.bootstrap, ports=cluster.ports) as admin:
        await admin.alter_configs({"retention.ms": "5", "segment.ms": None}, topic="orders")
        (request,) = cluster.asked(ApiKey.INCREMENTAL_ALTER_CONFIGS)
        operations = [(entry.name, entry.config_operation, entry.value) for entry in request.resources[0].configs]
        assert operations == [("retention.ms", 0, "5"), ("segment.ms", 1, None)]
        with pytest.raises(KafkaError, match="settings of topic 'orders': no such setting"):
            await admin.alter_configs({"x": "5"}, topic="orders")


async def test_the_cluster_and_its_directories() -> None:
    cluster = FakeCluster(nodes=2)
    cluster.handlers[ApiKey.DESCRIBE_CLUSTER] = lambda *_: DescribeClusterResponse(
        cluster_id="abc", controller_id=2, brokers=[DescribeClusterBroker(broker_id=2, host="h", port=1, rack="r")]
    )
    cluster.handlers[ApiKey.DESCRIBE_LOG_DIRS] = lambda _, node: DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResult(
                log_dir=f"/data/{node}",
                total_bytes=100,
                usable_bytes=40,
                topics=[
                    DescribeLogDirsTopic(
                        name="orders", partitions=[DescribeLogDirsPartition(partition_index=node, partition_size=9)]
                    )
                ],
            )
        ]
    )
    async with Admin(cluster.bootstrap, ports=cluster.ports) as admin:
        described = await admin.describe_cluster()
        assert (described.cluster_id, described.controller, described.brokers[0].rack) == ("abc", 2, "r")
        first, second = await admin.describe_log_dirs()
        assert (first.path, second.path) == ("/data/1", "/data/2")
        assert second.partitions == {TopicPartition("orders", 2): 9}
        assert (first.usable_bytes, first.error) == (40, ErrorCode.NONE)
        assert len(await admin.describe_log_dirs(2)) == 1


async def test_records_are_deleted_at_each_leader() -> None:
    cluster = FakeCluster(nodes=2)
    cluster.create_topic("orders", 2)

    def answer(request: DeleteRecordsRequest, node: int) -> DeleteRecordsResponse:
        (topic,) = request.topics
        (part,) = topic.partitions
        assert cluster.topics["orders"].leaders[part.partition_index] == node
        code = ErrorCode.OFFSET_OUT_OF_RANGE if part.offset > 100 else ErrorCode.NONE
        result = DeleteRecordsPartitionResult(
            partition_index=part.partition_index, low_watermark=part.offset, error_code=code
        )
        return DeleteRecordsResponse(topics=[DeleteRecordsTopicResult(name="orders", partitions=[result])])

    cluster.handlers[ApiKey.DELETE_RECORDS] = answer
    zero, one = TopicPartition("orders", 0), TopicPartition("orders", 1)
    async with Admin(cluster.bootstrap, ports=cluster.ports) as admin:
        assert await admin.delete_records({zero: 5, one: 7}) == {zero: 5, one: 7}
        with pytest.raises(PartlyFailed, match="records of orders-1: the partition does not have"):
            await admin.delete_records({zero: 5, one: 700})
        assert (await admin.list_offsets({zero: "latest"}))[zero].offset == 0


T0 = TopicPartition("t", 0)
ODD: Any = object()
CALLS: list[tuple[Callable[[Any], Awaitable[object]], str]] = [
    (lambda admin: admin.create_topic("t", partitions=1.5), "partitions is a whole number, not float: 1.5"),
    (lambda admin: admin.create_topic("t", partitions=2**31), "partitions is a whole number from"),
    (lambda admin: admin.create_topic("t", replication_factor=2**15), "replication_factor is a whole number from"),
    (lambda admin: admin.create_topic(7), "a topic's name is a str, not int: 7"),
    (lambda admin: admin.create_topic("\ud800"), "half a surrogate pair"),
    (lambda admin: admin.create_topic("x" * 40_000), "a topic's name has at most 32767 bytes"),
    (lambda admin: admin.create_topic("t", configs={"a": None}), "the value of 'a' is a str, not NoneType"),
    (lambda admin: admin.create_topic("t", configs={7: "a"}), "a setting's name is a str, not int"),
    (lambda admin: admin.create_topics([NewTopic("t", assignments=[[0.5]])]), "a replica is a whole number"),
    (lambda admin: admin.delete_topics(["t", None]), "a topic's name is a str, not NoneType"),
    (lambda admin: admin.delete_topics(b"t"), "a topic's name is a str, or there are several, not bytes"),
    (lambda admin: admin.describe_topics(7), "a topic's name is a str, or there are several, not int"),
    (lambda admin: admin.create_partitions("t", 3.0), "total is a whole number"),
    (lambda admin: admin.describe_configs(topic=b"t"), "a topic's name is a str, not bytes"),
    (lambda admin: admin.describe_configs(broker="0"), "broker is a whole number"),
    (lambda admin: admin.describe_configs(topic="t", names=[7]), "a setting's name is a str"),
    (lambda admin: admin.alter_configs({"a": [1]}, topic="t"), "the value of 'a' is a str, not list"),
    (lambda admin: admin.describe_log_dirs(1.0), "broker is a whole number"),
    (lambda admin: admin.delete_records({T0: 2**63}), "an offset is a whole number from -1 to"),
    (lambda admin: admin.delete_records({("t", "0"): 1}), "a partition's number is a whole number, not str"),
    (lambda admin: admin.list_offsets({T0: 2**63}), "a time in milliseconds is a whole number"),
    (lambda admin: admin.list_offsets({T0: 0.5}), "0.5 is no place in a log"),
    (lambda admin: admin.list_offsets({"t-0": 0}), "a partition is a topic's name and a number, not str"),
    (lambda admin: admin.list_groups(states=[1]), "a state is a str"),
    (lambda admin: admin.describe_group(7), "a group's name is a str"),
    (lambda admin: admin.group_offsets(None), "a group's name is a str"),
    (lambda admin: admin.alter_group_offsets("g", {T0: 1.5}), "an offset is a whole number"),
    (lambda admin: admin.alter_group_offsets("g", {T0: CommittedOffset(ODD)}), "an offset is a whole number"),
    (
        lambda admin: admin.alter_group_offsets("g", {T0: CommittedOffset(Offset(1), 2**31)}),
        "a leader epoch is a whole",
    ),
    (lambda admin: admin.delete_group_offsets("g", [("t", None)]), "a partition's number is a whole number"),
    (lambda admin: admin.delete_groups(["g", 7]), "a group's name is a str"),
    (lambda admin: admin.list_transactions(producer_ids=[2**63]), "a producer id is a whole number"),
    (lambda admin: admin.list_transactions(older_than_ms=0.5), "older_than_ms is a whole number"),
    (lambda admin: admin.describe_transaction(7), "a transactional id is a str"),
    (lambda admin: admin.abort_transaction(None), "a transactional id is a str"),
    (lambda admin: admin.describe_producers([("t", -1)]), "a partition's number is a whole number from 0"),
]


async def test_what_no_request_can_hold_is_refused_before_anything_is_sent() -> None:
    cluster = FakeCluster()
    async with Admin(cluster.bootstrap, ports=cluster.ports) as admin:
        asked = len(cluster.requests)
        for call, sentence in CALLS:
            with pytest.raises((TypeError, ValueError), match=re.escape(sentence)):
                await call(admin)
        assert len(cluster.requests) == asked
    with pytest.raises(TypeError, match="timeout_ms is a whole number"):
        Admin(cluster.bootstrap, timeout_ms=ODD)
