"""OffsetCommit in every version."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.support.asking import serving
from tests.support.denial import deny
from tests.support.group_lines import GROUP, commit, commit_request, committed, in_a_group, prepared


@pytest.mark.parametrize("version", range(2, 11))
async def test_offsets_are_committed_from_outside_a_group(version: int) -> None:
    async with serving() as (line, node):
        await prepared(line, "t")
        topic = node.parts.metadata.image.topic("t")
        assert topic is not None
        request = commit_request("t", 7)
        request.topics[0].topic_id = topic.id
        response = await line.ask(ApiKey.OFFSET_COMMIT, version, request)
        (answer,) = response.topics
        assert (answer.name, answer.topic_id == topic.id) == (("", True) if version >= 10 else ("t", False))
        assert answer.partitions[0].error_code == ErrorCode.NONE
        assert await committed(line, "t") == 7


async def test_each_partition_is_answered_on_its_own_and_in_order() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t", "u")
        parts = [OffsetCommitRequestPartition(1, 5), OffsetCommitRequestPartition(0, 5)]
        topics = [OffsetCommitRequestTopic(name=name, partitions=parts) for name in ("t", "missing", "u")]
        topics[0].partitions = [
            OffsetCommitRequestPartition(1, 5),
            OffsetCommitRequestPartition(2, 5),
            OffsetCommitRequestPartition(-1, 5),
            OffsetCommitRequestPartition(0, 6, committed_metadata="x" * 5_000),
        ]
        response = await line.ask(ApiKey.OFFSET_COMMIT, 9, OffsetCommitRequest(GROUP, topics=topics))
        codes = {
            (topic.name, each.partition_index): each.error_code
            for topic in response.topics
            for each in topic.partitions
        }
        assert list(codes.items()) == [
            (("t", 1), ErrorCode.NONE),
            (("t", 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (("t", -1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (("t", 0), ErrorCode.OFFSET_METADATA_TOO_LARGE),
            (("missing", 1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (("missing", 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (("u", 1), ErrorCode.NONE),
            (("u", 0), ErrorCode.NONE),
        ]
        assert (await committed(line, "t", 1), await committed(line, "t", 0)) == (5, -1)


@pytest.mark.parametrize(
    ("member_id", "generation", "code"),
    [
        (None, 0, ErrorCode.NONE),
        (None, 1, ErrorCode.ILLEGAL_GENERATION),
        ("nobody", 0, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
async def test_a_group_with_members_listens_only_to_them(
    member_id: str | None, generation: int, code: ErrorCode
) -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        told = await in_a_group(line)
        member = told.member_id if member_id is None else member_id
        epoch = -1 if generation < 0 else told.generation_id + generation
        assert await commit(line, "t", 3, member_id=member, generation_id_or_member_epoch=epoch) is code


async def test_a_topic_id_that_is_not_known_is_named() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        response = await line.ask(ApiKey.OFFSET_COMMIT, 10, commit_request("t", 1))
        assert response.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_only_topics_that_may_be_read_are_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.READ)
    async with serving() as (line, _node):
        await prepared(line, "t")
        assert await commit(line, "t", 1) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
