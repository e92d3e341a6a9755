"""TxnOffsetCommit."""

import asyncio
from typing import Any

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.support import group_lines
from tests.support.asking import Line, serving
from tests.support.coordinator_lines import ID, add_offsets, end, init, prepared
from tests.support.denial import deny
from tests.support.group_lines import GROUP, committed, in_a_group


async def commit(line: Line, producer: Any, offset: int, version: int = 5, **more: Any) -> list[ErrorCode]:
    """Commit the same offset for a partition that exists, one that does not, and a topic that does not."""
    partitions = [TxnOffsetCommitRequestPartition(index, offset, -1, "note") for index in (0, 7)]
    topics = [
        TxnOffsetCommitRequestTopic("t", partitions),
        TxnOffsetCommitRequestTopic("nowhere", partitions[:1]),
    ]
    request = TxnOffsetCommitRequest(ID, GROUP, producer.producer_id, producer.producer_epoch, topics=topics, **more)
    response = await line.ask(ApiKey.TXN_OFFSET_COMMIT, version, request)
    return [ErrorCode(each.error_code) for topic in response.topics for each in topic.partitions]


UNKNOWN = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("commits", [True, False])
async def test_every_version_commits_with_the_transaction(version: int, commits: bool) -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        await group_lines.prepared(line, "t")
        producer = await init(line)
        if version < 5:
            await add_offsets(line, producer, GROUP)
        assert await commit(line, producer, 42, version) == [ErrorCode.NONE, *UNKNOWN]
        assert await committed(line, "t") == -1
        await end(line, producer, committed=commits, version=version)
        await asyncio.sleep(1)
        assert await committed(line, "t") == (42 if commits else -1)


async def test_a_member_of_an_older_generation_commits_nothing() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        await group_lines.prepared(line, "t")
        told = await in_a_group(line)
        producer = await init(line)
        member = {"member_id": told.member_id, "generation_id": told.generation_id}
        old = member | {"generation_id": told.generation_id + 1}
        assert await commit(line, producer, 5, **old) == [ErrorCode.ILLEGAL_GENERATION, *UNKNOWN]
        assert await commit(line, producer, 5, **member) == [ErrorCode.NONE, *UNKNOWN]


@pytest.mark.parametrize(("version", "code"), [(3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)])
async def test_a_group_that_was_not_added_is_no_part_of_the_transaction(version: int, code: ErrorCode) -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        await group_lines.prepared(line, "t")
        assert await commit(line, await init(line), 5, version) == [code, *UNKNOWN]


async def test_a_zombie_commits_nothing() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        await group_lines.prepared(line, "t")
        old = await init(line)
        assert await commit(line, old, 5) == [ErrorCode.NONE, *UNKNOWN]
        await init(line)
        assert await commit(line, old, 6) == [ErrorCode.INVALID_PRODUCER_EPOCH, *UNKNOWN]
        assert await committed(line, "t") == -1


@pytest.mark.parametrize(
    ("denied", "code"),
    [
        (Operation.WRITE, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (Operation.READ, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
async def test_not_everybody_may_commit(monkeypatch: pytest.MonkeyPatch, denied: Operation, code: ErrorCode) -> None:
    deny(monkeypatch, denied)
    async with serving() as (line, _node):
        await prepared(line, "t")
        await group_lines.prepared(line, "t")
        first, *_ = await commit(line, await init(line), 5)
        assert first is code


@pytest.mark.parametrize(
    ("version", "code"), [(1, ErrorCode.COORDINATOR_NOT_AVAILABLE), (2, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)]
)
async def test_old_clients_do_not_know_that_coordinators_load(version: int, code: ErrorCode) -> None:
    async with serving() as (line, node):
        await prepared(line, "t")
        await group_lines.prepared(line, "t")
        producer = await init(line)
        await add_offsets(line, producer, GROUP)
        await commit(line, producer, 5)
        for shard in node.parts.groups:
            shard.loaded = False
        first, *_ = await commit(line, producer, 5, version)
        assert first is code
