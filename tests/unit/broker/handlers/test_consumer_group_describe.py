"""ConsumerGroupDescribe in both versions."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from riverlog.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.support.asking import serving
from tests.support.denial import deny
from tests.support.group_lines import GROUP, in_a_group, prepared


@pytest.mark.parametrize("version", [0, 1])
async def test_a_group_is_described_with_its_members(version: int) -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        join = ConsumerGroupHeartbeatRequest(GROUP, "m", 0, None, None, 10_000, ["t"], topic_partitions=[])
        told = await line.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, join)
        await in_a_group(line, "classic")
        request = ConsumerGroupDescribeRequest([GROUP, "classic", "nobody", ""], include_authorized_operations=True)
        response = await line.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, version, request)
        group, classic, missing, nameless = response.groups
        assert (group.error_code, group.group_id, group.assignor_name) == (ErrorCode.NONE, GROUP, "uniform")
        assert group.authorized_operations > 0
        (member,) = group.members
        assert (member.member_id, member.member_epoch, member.client_id) == ("m", told.member_epoch, "test")
        assert member.subscribed_topic_names == ["t"]
        for assignment in (member.assignment, member.target_assignment):
            (topic,) = assignment.topic_partitions
            assert (topic.topic_name, topic.partitions) == ("t", [0, 1])
        assert member.member_type == (1 if version >= 1 else -1)
        assert classic.error_code == missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert nameless.error_code == ErrorCode.INVALID_GROUP_ID


async def test_who_may_not_see_a_group_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.DESCRIBE)
    async with serving() as (line, _node):
        request = ConsumerGroupDescribeRequest([GROUP])
        (group,) = (await line.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, request)).groups
        assert group.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
