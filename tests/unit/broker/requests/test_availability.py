"""What clients are told of brokers, leaders and replicas where there are several."""

from typing import Any

import pytest

from riverlog.coordination.shards import index_of
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_cluster import DescribeClusterRequest
from riverlog.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.asking import Line, serving
from tests.support.second_broker import OTHER, SecondBroker


async def asked(line: Line, *names: str, version: int = 12) -> Any:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return await line.ask(ApiKey.METADATA, version, MetadataRequest(topics=topics, allow_auto_topic_creation=False))


async def described(line: Line, name: str) -> Any:
    request = DescribeTopicPartitionsRequest([TopicRequest(name)], 2000)
    return (await line.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)).topics[0].partitions


async def test_a_fenced_broker_is_named_only_where_clients_ask_for_such() -> None:
    async with serving() as (line, node):
        other = await SecondBroker.join(node, rack="b")
        brokers = (await asked(line)).brokers
        assert [(each.node_id, each.host, each.rack) for each in brokers] == [(1, "node", None), (OTHER, "other", "b")]
        await other.fence()
        response = await asked(line)
        assert ([each.node_id for each in response.brokers], response.controller_id) == ([1], 1)
        for include, seen in ((False, [(1, False)]), (True, [(1, False), (OTHER, True)])):
            request = DescribeClusterRequest(include_fenced_brokers=include)
            cluster = await line.ask(ApiKey.DESCRIBE_CLUSTER, 2, request)
            assert [(each.broker_id, each.is_fenced) for each in cluster.brokers] == seen
            assert cluster.controller_id == 1


async def test_leaders_and_offline_replicas_are_told_truly() -> None:
    async with serving() as (line, node):
        other = await SecondBroker.join(node)
        await other.create("orders", (2, 1), (1, 2))
        await other.create("bills", (2,))

        async def seen(name: str) -> list[tuple[int, int, list[int]]]:
            (topic,) = (await asked(line, name)).topics
            paged = await described(line, name)
            found = [
                [(each.error_code, each.leader_id, each.offline_replicas) for each in partitions]
                for partitions in (topic.partitions, paged)
            ]
            assert found[0] == found[1]
            return found[0]

        assert await seen("orders") == [(ErrorCode.NONE, 2, []), (ErrorCode.NONE, 1, [])]
        assert await seen("bills") == [(ErrorCode.NONE, 2, [])]
        await other.fence()
        assert await seen("orders") == [(ErrorCode.NONE, 1, [2]), (ErrorCode.NONE, 1, [2])]
        assert await seen("bills") == [(ErrorCode.LEADER_NOT_AVAILABLE, -1, [2])]


@pytest.mark.parametrize(("version", "code"), [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)])
async def test_a_leader_on_another_listener_is_none_that_the_client_can_reach(version: int, code: ErrorCode) -> None:
    async with serving() as (line, node):
        other = await SecondBroker.join(node, listener="INSIDE")
        await other.create("bills", (2,))
        response = await asked(line, "bills", version=version)
        (partition,) = response.topics[0].partitions
        assert (partition.error_code, partition.leader_id, partition.offline_replicas) == (code, -1, [2])
        assert [each.node_id for each in response.brokers] == [1]


@pytest.mark.parametrize(("key_type", "topic"), [(0, "__consumer_offsets"), (1, "__transaction_state")])
async def test_a_coordinator_is_the_leader_of_its_partition(key_type: int, topic: str) -> None:
    async with serving() as (line, node):
        other = await SecondBroker.join(node)
        await other.create(topic, (1, 2), (2, 1))
        by_index = {index_of(key, 2): key for key in "abcd"}

        async def found() -> list[tuple[int, str, int]]:
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[by_index[0], by_index[1]])
            response = await line.ask(ApiKey.FIND_COORDINATOR, 4, request)
            return [(each.node_id, each.host, each.error_code) for each in response.coordinators]

        assert await found() == [(1, "node", ErrorCode.NONE), (OTHER, "other", ErrorCode.NONE)]
        await other.fence()
        assert await found() == [(1, "node", ErrorCode.NONE)] * 2


async def test_a_coordinator_that_nobody_can_be_is_not_available() -> None:
    async with serving() as (line, node):
        other = await SecondBroker.join(node)
        await other.create("__consumer_offsets", (2,))
        await other.fence()
        response = await line.ask(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=["g"]))
        (found,) = response.coordinators
        assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)


async def test_all_topics_of_a_large_cluster_are_described() -> None:
    async with serving() as (line, node):
        other = await SecondBroker.join(node)
        for topic in ("a", "b", "c"):
            await other.create(topic, *((1, 2),) * 300)
        response = await line.ask(ApiKey.METADATA, 12, MetadataRequest(topics=None))
        assert [(topic.name, len(topic.partitions)) for topic in response.topics] == [
            ("a", 300),
            ("b", 300),
            ("c", 300),
        ]
