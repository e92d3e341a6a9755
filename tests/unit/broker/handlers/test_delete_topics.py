"""DeleteTopics, by name and by id."""

from typing import Any
from uuid import UUID

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.support.asking import Line, serving
from tests.support.denial import deny
from tests.support.virtual_time import run


async def create(line: Line, *names: str) -> list[UUID]:
    request = CreateTopicsRequest(topics=[CreatableTopic(name) for name in names])
    return [each.topic_id for each in (await line.ask(ApiKey.CREATE_TOPICS, 7, request)).topics]


async def delete(line: Line, *topics: DeleteTopicState) -> list[Any]:
    return list((await line.ask(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=list(topics)))).responses)


async def test_every_version_deletes_by_name():
    async with serving() as (line, _node):
        for version in range(1, 6):
            await create(line, "orders")
            request = DeleteTopicsRequest(topic_names=["orders", "missing"])
            gone, missing = (await line.ask(ApiKey.DELETE_TOPICS, version, request)).responses
            assert (gone.name, gone.error_code) == ("orders", ErrorCode.NONE)
            assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_by_name_or_by_id_but_not_both_and_not_twice():
    async with serving() as (line, _node):
        first, second, third = await create(line, "orders", "bills", "refunds")
        answers = await delete(
            line,
            DeleteTopicState(name="orders"),
            DeleteTopicState(topic_id=first),
            DeleteTopicState(topic_id=second),
            DeleteTopicState(name="bills", topic_id=second),
            DeleteTopicState(topic_id=UUID(int=9)),
            DeleteTopicState(),
            DeleteTopicState(name="refunds"),
        )
        assert [each.error_code for each in answers] == [
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.NONE,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.NONE,
        ]
        assert [(each.name, each.topic_id) for each in answers[2::4]] == [("bills", second), ("refunds", third)]
        (still_there,) = await delete(line, DeleteTopicState(topic_id=first))
        assert still_there.error_code == ErrorCode.NONE


async def test_a_cluster_may_forbid_it():
    async with serving(delete_topic_enable="false") as (line, _node):
        await create(line, "orders")
        (answer,) = await delete(line, DeleteTopicState(name="orders"))
        assert answer.error_code == ErrorCode.TOPIC_DELETION_DISABLED
        assert "delete.topic.enable" in answer.error_message


@pytest.mark.parametrize(
    ("denied", "by_name", "by_id"),
    [
        (Operation.DELETE, ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (Operation.DESCRIBE, ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_ID),
    ],
)
def test_who_may_not_delete_learns_no_more_than_they_may(denied, by_name, by_id, monkeypatch: pytest.MonkeyPatch):
    async def scenario() -> None:
        async with serving() as (line, _node):
            (topic_id,) = await create(line, "orders")
            answers = await delete(line, DeleteTopicState(name="orders"), DeleteTopicState(topic_id=topic_id))
            assert [each.error_code for each in answers] == [by_name, by_id]
            if by_id is ErrorCode.UNKNOWN_TOPIC_ID:
                assert answers[1].name is None

    deny(monkeypatch, denied)
    run(scenario())
