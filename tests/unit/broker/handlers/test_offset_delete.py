"""OffsetDelete."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.support.asking import serving
from tests.support.denial import deny
from tests.support.group_lines import GROUP, commit, committed, prepared


def request(group: str = GROUP) -> OffsetDeleteRequest:
    parts = [OffsetDeleteRequestPartition(index) for index in (0, 1, 2)]
    return OffsetDeleteRequest(group, [OffsetDeleteRequestTopic(name, parts) for name in ("missing", "t")])


async def test_offsets_are_forgotten() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        await commit(line, "t", 7)
        response = await line.ask(ApiKey.OFFSET_DELETE, 0, request())
        assert response.error_code == ErrorCode.NONE
        codes = {topic.name: [each.error_code for each in topic.partitions] for topic in response.topics}
        assert codes == {
            "missing": [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 3,
            "t": [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        }
        assert await committed(line, "t") == -1


async def test_a_group_that_does_not_exist_is_refused_as_a_whole() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        response = await line.ask(ApiKey.OFFSET_DELETE, 0, request("nobody"))
        assert (response.error_code, response.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])


async def test_not_everybody_may_delete(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.DELETE)
    async with serving() as (line, _node):
        await prepared(line, "t")
        response = await line.ask(ApiKey.OFFSET_DELETE, 0, request())
        assert response.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
