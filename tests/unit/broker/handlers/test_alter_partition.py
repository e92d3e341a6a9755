"""Leaders that have their in-sync replicas changed."""

from uuid import UUID

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.alter_partition import (
    AlterPartitionPartition,
    AlterPartitionRequest,
    AlterPartitionTopic,
    InSyncReplica,
)
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.support.asking import Line
from tests.support.clusters import ClusterOfNodes, controller_line
from tests.support.denial import deny
from tests.support.virtual_time import run


@pytest.mark.parametrize("version", [2, 3])
def test_each_partition_is_decided_on_its_own(version: int) -> None:
    async def scenario() -> None:
        async with controller_line() as (line, cluster):
            await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("t", 3)]))
            image = cluster.nodes[1].controller.image
            topic, broker = image.topic("t"), image.brokers[4]
            assert topic is not None

            def wanted(index: int, *isr: int, leader_epoch: int = 0) -> AlterPartitionPartition:
                if version < 3:
                    return AlterPartitionPartition(index, leader_epoch, list(isr))
                named = [InSyncReplica(each, broker.epoch) for each in isr]
                return AlterPartitionPartition(index, leader_epoch, [], named)

            known = [wanted(0, 4), wanted(1, 4, leader_epoch=1), wanted(2), wanted(3, 4)]
            request = AlterPartitionRequest(
                4,
                broker.epoch,
                [AlterPartitionTopic(topic.id, known), AlterPartitionTopic(UUID(int=9), [wanted(0, 4)])],
            )
            response = await line.ask(ApiKey.ALTER_PARTITION, version, request)
            assert response.error_code == ErrorCode.NONE
            first, other = response.topics
            assert (first.topic_id, other.topic_id) == (topic.id, UUID(int=9))
            assert [(each.partition_index, each.error_code) for each in first.partitions] == [
                (0, ErrorCode.NONE),
                (1, ErrorCode.NOT_CONTROLLER),
                (2, ErrorCode.INVALID_REQUEST),
                (3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ]
            now = first.partitions[0]
            assert (now.leader_id, now.leader_epoch, now.isr, now.partition_epoch) == (4, 0, [4], 0)
            assert [each.error_code for each in other.partitions] == [ErrorCode.UNKNOWN_TOPIC_ID]
            request.broker_epoch -= 1
            response = await line.ask(ApiKey.ALTER_PARTITION, version, request)
            assert (response.error_code, response.topics) == (ErrorCode.STALE_BROKER_EPOCH, [])

    run(scenario())


def test_only_nodes_of_the_cluster_may(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.CLUSTER_ACTION)

    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller"})
        await cluster.start()
        line = Line(await cluster.network.connect("n1", 9093))
        response = await line.ask(ApiKey.ALTER_PARTITION, 3, AlterPartitionRequest(4, 0))
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        await cluster.stop()

    run(scenario())
