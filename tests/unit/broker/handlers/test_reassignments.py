"""AlterPartitionReassignments and ListPartitionReassignments, on a node that is alone and in a cluster."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from riverlog.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from riverlog.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.support.asking import Line, serving
from tests.support.clusters import ClusterOfNodes, controller_line
from tests.support.denial import deny
from tests.support.virtual_time import run


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


def test_a_move_is_called_off_or_seen_wherever_it_is_asked_for() -> None:
    async def scenario() -> None:
        async with controller_line() as (controller, cluster):
            await controller.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("t", 2)]))
            broker = Line(await cluster.network.connect("n4", 9092))
            for line in (controller, broker):
                partitions = [ReassignablePartition(0, [4]), ReassignablePartition(1, None)]
                request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("t", partitions)])
                response = await line.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, request)
                assert [each.error_code for each in response.responses[0].partitions] == [
                    ErrorCode.NONE,
                    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
                ]
                listed = await line.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest())
                assert (listed.error_code, listed.topics) == (ErrorCode.NONE, [])

    run(scenario())


def test_a_partition_on_its_way_is_listed_until_that_is_called_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riverlog.controller.controller.REPLICAS_MAX", None)

    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 4: "broker", 5: "broker"})
        await cluster.start()
        line = Line(await cluster.network.connect("n1", 9093))
        assigned = [CreatableReplicaAssignment(index, [4]) for index in range(2)]
        await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("t", -1, -1, assigned)]))

        async def move(replicas: list[int] | None) -> ErrorCode:
            topic = ReassignableTopic("t", [ReassignablePartition(1, replicas)])
            request = AlterPartitionReassignmentsRequest(topics=[topic])
            response = await line.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, request)
            return ErrorCode(response.responses[0].partitions[0].error_code)

        assert await move([5]) is ErrorCode.NONE
        for topics in (None, [ListPartitionReassignmentsTopics("t", [0, 1, 2])]):
            request = ListPartitionReassignmentsRequest(topics=topics)
            response = await line.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request)
            [listed] = response.topics
            [found] = listed.partitions
            assert (listed.name, found.partition_index) == ("t", 1)
            assert (found.replicas, found.adding_replicas, found.removing_replicas) == ([5, 4], [5], [4])
        assert await move(None) is ErrorCode.NONE
        response = await line.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest())
        assert (response.error_code, response.topics) == (ErrorCode.NONE, [])
        await cluster.stop()

    run(scenario())
