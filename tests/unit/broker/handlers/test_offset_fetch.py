"""OffsetFetch in every version."""

from typing import Any
from uuid import UUID

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic
from tests.support.asking import serving
from tests.support.denial import deny
from tests.support.group_lines import GROUP, commit, prepared


def request(topics: list[OffsetFetchRequestTopic] | None, *groups: str) -> OffsetFetchRequest:
    """Ask in the form of all versions."""
    asked = [OffsetFetchRequestGroup(group, topics=topics) for group in groups or (GROUP,)]
    return OffsetFetchRequest(group_id=GROUP, topics=topics, groups=asked)


def offsets(topics: list[Any]) -> dict[tuple[str, int], tuple[int, str]]:
    return {
        (topic.name, each.partition_index): (each.committed_offset, each.metadata)
        for topic in topics
        for each in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, 11))
async def test_what_was_committed_comes_back(version: int) -> None:
    async with serving() as (line, node):
        await prepared(line, "t")
        await commit(line, "t", 7, partition=1)
        topic = node.parts.metadata.image.topic("t")
        assert topic is not None
        name = "" if version >= 10 else "t"
        asked = OffsetFetchRequestTopic(topic.id, "t", [1, 0])
        response = await line.ask(ApiKey.OFFSET_FETCH, version, request([asked]))
        found = response.groups[0] if version >= 8 else response
        assert found.error_code == ErrorCode.NONE
        assert offsets(found.topics) == {(name, 1): (7, "note"), (name, 0): (-1, "")}
        assert [each.committed_leader_epoch for each in found.topics[0].partitions] == [
            5 if version >= 5 else -1,
            -1,
        ]
        if version >= 2:
            response = await line.ask(ApiKey.OFFSET_FETCH, version, request(None))
            found = response.groups[0] if version >= 8 else response
            assert offsets(found.topics) == {(name, 1): (7, "note")}
            assert found.topics[0].topic_id == (topic.id if version >= 10 else UUID(int=0))


async def test_many_groups_are_answered_in_order() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        await commit(line, "t", 7)
        await commit(line, "t", 8, group_id="h")
        response = await line.ask(ApiKey.OFFSET_FETCH, 8, request(None, "h", "nobody", GROUP))
        assert [(each.group_id, offsets(each.topics)) for each in response.groups] == [
            ("h", {("t", 0): (8, "note")}),
            ("nobody", {}),
            (GROUP, {("t", 0): (7, "note")}),
        ]


async def test_without_a_coordinator_every_version_says_so() -> None:
    async with serving() as (line, _node):
        asked = OffsetFetchRequestTopic(name="t", partition_indexes=[0])
        for version in (1, 2, 8):
            response = await line.ask(ApiKey.OFFSET_FETCH, version, request([asked]))
            if version == 1:
                assert response.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
            else:
                found = response.groups[0] if version >= 8 else response
                assert (found.error_code, found.topics) == (ErrorCode.NOT_COORDINATOR, [])


async def test_an_unknown_topic_id_spoils_only_its_own_partitions() -> None:
    async with serving() as (line, node):
        await prepared(line, "t")
        await commit(line, "t", 7)
        topic = node.parts.metadata.image.topic("t")
        assert topic is not None
        asked = [OffsetFetchRequestTopic(UUID(int=1), "", [0]), OffsetFetchRequestTopic(topic.id, "", [0])]
        (group,) = (await line.ask(ApiKey.OFFSET_FETCH, 10, request(asked))).groups
        (unknown,), (known,) = (each.partitions for each in group.topics)
        assert (unknown.error_code, unknown.committed_offset) == (ErrorCode.UNKNOWN_TOPIC_ID, -1)
        assert (known.error_code, known.committed_offset) == (ErrorCode.NONE, 7)


async def test_who_may_not_see_the_group_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.DESCRIBE)
    async with serving() as (line, _node):
        (group,) = (await line.ask(ApiKey.OFFSET_FETCH, 9, request(None))).groups
        assert group.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
