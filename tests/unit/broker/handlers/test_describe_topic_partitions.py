"""DescribeTopicPartitions, page by page."""

from typing import Any

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from tests.support.asking import Line, serving
from tests.support.denial import deny
from tests.support.virtual_time import run


async def with_topics(line: Line) -> None:
    topics = [CreatableTopic("b", 3), CreatableTopic("a", 2), CreatableTopic("c", 1)]
    await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=topics))


async def describe(line: Line, *names: str, limit: int = 2000, cursor: Cursor | None = None) -> Any:
    request = DescribeTopicPartitionsRequest([TopicRequest(name) for name in names], limit, cursor)
    return await line.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)


def seen(response: Any) -> list[tuple[str, int]]:
    return [(topic.name, part.partition_index) for topic in response.topics for part in topic.partitions]


ALL = [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]


@pytest.mark.parametrize("limit", range(1, 8))
async def test_pages_follow_each_other_and_leave_nothing_out(limit):
    async with serving() as (line, _node):
        await with_topics(line)
        cursor, pages = None, []
        while True:
            response = await describe(line, limit=limit, cursor=cursor)
            pages.append(seen(response))
            cursor = response.next_cursor
            if cursor is None:
                break
        assert [each for page in pages for each in page] == ALL
        assert all(len(page) == limit for page in pages[:-1])


async def test_the_node_bounds_a_page():
    async with serving(max_request_partition_size_limit="4") as (line, _node):
        await with_topics(line)
        response = await describe(line)
        assert seen(response) == ALL[:4]
        assert (response.next_cursor.topic_name, response.next_cursor.partition_index) == ("b", 2)


@pytest.mark.parametrize("cursor", [Cursor("a", -1), Cursor("b", 0)])
async def test_a_cursor_that_no_page_gave_is_refused(cursor):
    async with serving() as (line, _node):
        await with_topics(line)
        response = await describe(line, "c", "a", cursor=cursor)
        assert [(topic.name, topic.error_code) for topic in response.topics] == [
            ("a", ErrorCode.INVALID_REQUEST),
            ("c", ErrorCode.INVALID_REQUEST),
        ]


async def test_topics_by_name_come_sorted_and_once():
    async with serving() as (line, _node):
        await with_topics(line)
        response = await describe(line, "c", "missing", "a", "c")
        assert [(topic.name, topic.error_code) for topic in response.topics] == [
            ("a", ErrorCode.NONE),
            ("c", ErrorCode.NONE),
            ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
        (part,) = response.topics[1].partitions
        assert (part.leader_id, part.replica_nodes, part.isr_nodes, part.eligible_leader_replicas) == (
            1,
            [1],
            [1],
            [],
        )


def test_who_may_not_describe_sees_nothing(monkeypatch: pytest.MonkeyPatch):
    async def scenario() -> None:
        async with serving() as (line, _node):
            await with_topics(line)
            assert (await describe(line)).topics == []
            (topic,) = (await describe(line, "a")).topics
            assert topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED

    deny(monkeypatch, Operation.DESCRIBE)
    run(scenario())
