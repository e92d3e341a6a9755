"""CreateTopics, as clients of all versions see it."""

from typing import Any
from uuid import UUID

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.model.limits import PARTITIONS_PER_REQUEST_MAX
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.support.asking import Line, serving
from tests.support.denial import deny
from tests.support.virtual_time import run


async def create(line: Line, *topics: CreatableTopic, version: int = 7, validate_only: bool = False) -> list[Any]:
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    return list((await line.ask(ApiKey.CREATE_TOPICS, version, request)).topics)


async def test_every_version_creates_and_the_newer_ones_describe():
    async with serving() as (line, _node):
        for version in range(2, 8):
            config = CreatableTopicConfig(name="retention.ms", value="5")
            (topic,) = await create(line, CreatableTopic(f"t{version}", 3, 1, [], [config]), version=version)
            assert (topic.name, topic.error_code) == (f"t{version}", ErrorCode.NONE)
            if version < 5:
                continue
            assert (topic.num_partitions, topic.replication_factor) == (3, 1)
            values = {each.name: (each.value, each.config_source) for each in topic.configs}
            assert values["retention.ms"] == ("5", 1)
            assert values["durability"] == ("os", 5)
            assert (topic.topic_id != UUID(int=0)) == (version >= 7)


async def test_answers_keep_the_order_of_the_request():
    async with serving() as (line, _node):
        gap = CreatableTopic("gap", -1, -1, [CreatableReplicaAssignment(1, [1])])
        answers = await create(line, CreatableTopic("a"), gap, CreatableTopic("b c"), CreatableTopic("d", 2, 2))
        assert [each.name for each in answers] == ["a", "gap", "b c", "d"]
        assert [each.error_code for each in answers] == [
            ErrorCode.NONE,
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.INVALID_REPLICATION_FACTOR,
        ]
        assert all(each.error_message for each in answers[1:])


async def test_replicas_assigned_by_hand_may_come_in_any_order():
    async with serving() as (line, _node):
        assigned = [CreatableReplicaAssignment(1, [1]), CreatableReplicaAssignment(0, [1])]
        (answer,) = await create(line, CreatableTopic("orders", -1, -1, assigned))
        assert (answer.error_code, answer.num_partitions) == (ErrorCode.NONE, 2)


async def test_a_rehearsal_creates_nothing():
    async with serving() as (line, _node):
        for _ in range(2):
            (answer,) = await create(line, CreatableTopic("orders", 2), validate_only=True)
            assert (answer.error_code, answer.num_partitions) == (ErrorCode.NONE, 2)


async def test_no_topics_are_no_answers():
    async with serving() as (line, _node):
        assert await create(line) == []


async def test_more_topics_than_a_request_can_create_are_refused_together():
    async with serving() as (line, node):
        names = [f"t{number}" for number in range(PARTITIONS_PER_REQUEST_MAX + 1)]
        answers = await create(line, *(CreatableTopic(name, 1, 1) for name in names))
        assert [each.name for each in answers] == names
        assert {each.error_code for each in answers} == {ErrorCode.INVALID_PARTITIONS}
        assert "10000" in answers[0].error_message
        assert not list(node.parts.metadata.image.all_topics())


def test_who_may_not_create_is_told_so(monkeypatch: pytest.MonkeyPatch):
    async def scenario() -> None:
        async with serving() as (line, _node):
            (answer,) = await create(line, CreatableTopic("orders"))
            assert answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED

    deny(monkeypatch, Operation.CREATE)
    run(scenario())


def test_who_may_not_see_settings_gets_none(monkeypatch: pytest.MonkeyPatch):
    async def scenario() -> None:
        async with serving() as (line, _node):
            (answer,) = await create(line, CreatableTopic("orders"))
            assert answer.error_code == ErrorCode.NONE
            assert answer.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert (answer.num_partitions, answer.configs) == (-1, [])

    deny(monkeypatch, Operation.DESCRIBE_CONFIGS)
    run(scenario())
