"""Brokers that say where replicas lie."""

from uuid import UUID

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.assign_replicas_to_dirs import (
    AssignedDirectory,
    AssignedPartition,
    AssignedTopic,
    AssignReplicasToDirsRequest,
)
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.support.clusters import controller_line
from tests.support.virtual_time import run

ELSEWHERE = UUID(int=777)


def test_each_replica_is_noted_where_it_lies() -> None:
    async def scenario() -> None:
        async with controller_line() as (line, cluster):
            await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("t", 2)]))
            controller = cluster.nodes[1].controller
            topic, broker = controller.image.topic("t"), controller.image.brokers[4]
            assert topic is not None
            parts = [AssignedPartition(index) for index in (1, 2)]
            here = AssignedDirectory(broker.log_dirs[0], [AssignedTopic(topic.id, [AssignedPartition(0)])])
            there = AssignedDirectory(
                ELSEWHERE, [AssignedTopic(topic.id, parts), AssignedTopic(ELSEWHERE, [AssignedPartition(0)])]
            )
            request = AssignReplicasToDirsRequest(4, broker.epoch, [here, there])
            response = await line.ask(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, request)
            assert response.error_code == ErrorCode.NONE
            assert [
                (
                    directory.id,
                    [[(each.partition_index, each.error_code) for each in t.partitions] for t in directory.topics],
                )
                for directory in response.directories
            ] == [
                (broker.log_dirs[0], [[(0, ErrorCode.NONE)]]),
                (
                    ELSEWHERE,
                    [
                        [(1, ErrorCode.NONE), (2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
                        [(0, ErrorCode.UNKNOWN_TOPIC_ID)],
                    ],
                ),
            ]
            topic = controller.image.topic("t")
            assert topic is not None
            assert [each.directories for each in topic.partitions] == [(broker.log_dirs[0],), (ELSEWHERE,)]
            request.broker_epoch += 1
            response = await line.ask(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, request)
            assert (response.error_code, response.directories) == (ErrorCode.STALE_BROKER_EPOCH, [])

    run(scenario())
