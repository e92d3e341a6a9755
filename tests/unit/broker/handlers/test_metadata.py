"""Metadata: who is there, which topics, and which come into being by being asked for."""

from typing import Any
from uuid import UUID

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.asking import Line, serving


async def asked(line: Line, version: int, *names: str, create: bool = True) -> Any:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return await line.ask(ApiKey.METADATA, version, MetadataRequest(topics=topics, allow_auto_topic_creation=create))


async def test_every_version_describes_the_cluster() -> None:
    async with serving(node_id="4", num_partitions="2") as (line, node):
        for version in range(14):
            response = await asked(line, version, "orders")
            assert [(each.node_id, each.host, each.port) for each in response.brokers] == [(4, "node", 9092)]
            (topic,) = response.topics
            assert (topic.name, topic.error_code) == ("orders", ErrorCode.NONE)
            assert [(each.partition_index, each.leader_id) for each in topic.partitions] == [(0, 4), (1, 4)]
            if version >= 2:
                assert response.cluster_id == node.cluster_id


async def test_nothing_asked_for_is_nothing_or_all() -> None:
    async with serving() as (line, _node):
        await asked(line, 12, "b", "a")
        everything = await line.ask(ApiKey.METADATA, 1, MetadataRequest(topics=None))
        assert [topic.name for topic in everything.topics] == ["a", "b"]
        assert [topic.name for topic in (await asked(line, 0)).topics] == ["a", "b"]
        assert (await asked(line, 1)).topics == []


async def test_topics_are_created_only_where_client_and_node_want_it() -> None:
    async with serving() as (line, _node):
        answer = await asked(line, 12, "orders", create=False)
        assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    async with serving(auto_create_topics_enable="false") as (line, _node):
        answer = await asked(line, 12, "orders")
        assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_an_impossible_name_is_refused_and_its_neighbour_created() -> None:
    async with serving() as (line, _node):
        bad, good = (await asked(line, 12, "a/b", "orders")).topics
        assert bad.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert good.error_code == ErrorCode.NONE


async def test_topics_are_found_by_id() -> None:
    async with serving() as (line, _node):
        (topic,) = (await asked(line, 12, "orders")).topics
        wanted = [MetadataRequestTopic(topic_id=each) for each in (topic.topic_id, UUID(int=7))]
        found, missing = (await line.ask(ApiKey.METADATA, 12, MetadataRequest(topics=wanted))).topics
        assert found.name == "orders"
        assert (missing.name, missing.error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)


async def test_versions_whose_answers_need_names_do_not_find_by_id() -> None:
    async with serving() as (line, _node):
        (orders,) = (await asked(line, 12, "orders")).topics
        by_id = [MetadataRequestTopic(topic_id=each) for each in (orders.topic_id, UUID(int=7))]
        for version in (10, 11):
            for topics in (by_id, [MetadataRequestTopic(name=None)]):
                answer = await line.ask(ApiKey.METADATA, version, MetadataRequest(topics=topics))
                assert {(each.name, each.error_code) for each in answer.topics} == {("", ErrorCode.INVALID_REQUEST)}


async def test_allowed_operations_are_given_when_asked_for() -> None:
    async with serving() as (line, _node):
        await asked(line, 12, "orders")
        request = MetadataRequest(include_cluster_authorized_operations=True, include_topic_authorized_operations=True)
        response = await line.ask(ApiKey.METADATA, 9, request)
        assert response.cluster_authorized_operations > 0
        assert response.topics[0].topic_authorized_operations > 0
        quiet = await line.ask(ApiKey.METADATA, 9, MetadataRequest())
        assert quiet.topics[0].topic_authorized_operations == -(2**31)
