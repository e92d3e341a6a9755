"""CreatePartitions."""

from typing import Any

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.metadata import MetadataRequest
from tests.support.asking import Line, serving
from tests.support.denial import deny
from tests.support.virtual_time import run


async def grow(line: Line, *topics: CreatePartitionsTopic, version: int = 3, validate_only: bool = False) -> list[Any]:
    request = CreatePartitionsRequest(topics=list(topics), validate_only=validate_only)
    return list((await line.ask(ApiKey.CREATE_PARTITIONS, version, request)).results)


async def count(line: Line) -> int:
    response = await line.ask(ApiKey.METADATA, 12, MetadataRequest())
    return len(response.topics[0].partitions)


async def test_every_version_adds_and_none_takes_away():
    async with serving() as (line, _node):
        await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[CreatableTopic("orders", 1)]))
        for version in range(4):
            fewer, missing = await grow(
                line, CreatePartitionsTopic("orders", 0), CreatePartitionsTopic("bills", 5), version=version
            )
            assert fewer.error_code == ErrorCode.INVALID_PARTITIONS
            assert "cannot have fewer" in fewer.error_message
            assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            (more,) = await grow(line, CreatePartitionsTopic("orders", version + 2), version=version)
            assert more.error_code == ErrorCode.NONE
            assert await count(line) == version + 2


async def test_a_rehearsal_and_replicas_by_hand():
    async with serving() as (line, _node):
        await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[CreatableTopic("orders", 1)]))
        by_hand = CreatePartitionsTopic("orders", 2, [CreatePartitionsAssignment([1])])
        (rehearsed,) = await grow(line, by_hand, validate_only=True)
        assert rehearsed.error_code == ErrorCode.NONE
        assert await count(line) == 1
        nobody = CreatePartitionsTopic("orders", 2, [CreatePartitionsAssignment([9])])
        (refused,) = await grow(line, nobody)
        assert refused.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        (done,) = await grow(line, by_hand)
        assert done.error_code == ErrorCode.NONE
        assert await count(line) == 2


def test_who_may_not_alter_is_told_so(monkeypatch: pytest.MonkeyPatch):
    async def scenario() -> None:
        async with serving() as (line, _node):
            (answer,) = await grow(line, CreatePartitionsTopic("orders", 2))
            assert answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED

    deny(monkeypatch, Operation.ALTER)
    run(scenario())
