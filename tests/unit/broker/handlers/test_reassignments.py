"""AlterPartitionReassignments and ListPartitionReassignments on a node that is alone."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.support.asking import serving
from tests.support.denial import deny


@pytest.mark.parametrize("version", [0, 1])
async def test_a_partition_can_only_stay_where_it_is(version: int) -> None:
    async with serving(node_id="1") as (line, _node):
        await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("t", 5)]))
        wanted: list[list[int] | None] = [[1], [2], None, [], [1, 1], [1]]
        partitions = [ReassignablePartition(index, replicas) for index, replicas in enumerate(wanted)]
        request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("t", partitions)])
        response = await line.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, version, request)
        assert response.error_code == ErrorCode.NONE
        assert [each.error_code for each in response.responses[0].partitions] == [
            ErrorCode.NONE,
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]


async def test_nothing_is_on_the_move() -> None:
    async with serving() as (line, _node):
        for topics in (None, [ListPartitionReassignmentsTopics("t", [0])]):
            request = ListPartitionReassignmentsRequest(topics=topics)
            response = await line.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request)
            assert (response.error_code, response.topics) == (ErrorCode.NONE, [])


async def test_not_everybody_may_move_partitions_or_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.ALTER, Operation.DESCRIBE)
    async with serving() as (line, _node):
        altered = await line.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, AlterPartitionReassignmentsRequest())
        listed = await line.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest())
        assert altered.error_code == listed.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
