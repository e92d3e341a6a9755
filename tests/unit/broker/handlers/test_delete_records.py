"""DeleteRecords."""

import asyncio
import errno
from typing import Any

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from riverlog.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from riverlog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.asking import Line, serving
from tests.support.batches import batch_of
from tests.support.denial import deny
from tests.support.virtual_time import run
from tests.support.world import PatientWorkers, Universe


async def with_records(line: Line, *configs: CreatableTopicConfig, topic: str = "orders") -> None:
    new = CreatableTopic(topic, 1, 1, [], list(configs))
    await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[new]))
    part = PartitionProduceData(index=0, records=batch_of([b"x"] * 10))  # type: ignore[arg-type]  # as on the wire
    request = ProduceRequest(
        acks=-1, timeout_ms=60_000, topic_data=[TopicProduceData(name=topic, partition_data=[part])]
    )
    response = await line.ask(ApiKey.PRODUCE, 12, request)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE


async def delete(line: Line, offset: int, *, topic: str = "orders", partition: int = 0, version: int = 2) -> Any:
    parts = [DeleteRecordsPartition(partition, offset)]
    request = DeleteRecordsRequest([DeleteRecordsTopic(topic, parts)], 1000)
    return (await line.ask(ApiKey.DELETE_RECORDS, version, request)).topics[0].partitions[0]


async def earliest(line: Line) -> int:
    parts = [ListOffsetsPartition(partition_index=0, timestamp=-2)]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="orders", partitions=parts)])
    return int((await line.ask(ApiKey.LIST_OFFSETS, 7, request)).topics[0].partitions[0].offset)


async def test_every_version_moves_the_beginning_and_never_back():
    async with serving() as (line, _node):
        await with_records(line)
        for version, offset, begins in ((0, 3, 3), (1, 2, 3), (2, 7, 7)):
            answer = await delete(line, offset, version=version)
            assert (answer.error_code, answer.low_watermark) == (ErrorCode.NONE, begins)
            assert await earliest(line) == begins
        everything = await delete(line, -1)
        assert (everything.error_code, everything.low_watermark) == (ErrorCode.NONE, 10)


@pytest.mark.parametrize(
    ("offset", "partition", "code"),
    [
        (11, 0, ErrorCode.OFFSET_OUT_OF_RANGE),
        (-2, 0, ErrorCode.OFFSET_OUT_OF_RANGE),
        (1, 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (1, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_what_is_not_there_cannot_be_deleted(offset, partition, code):
    async with serving() as (line, _node):
        await with_records(line)
        answer = await delete(line, offset, partition=partition)
        assert (answer.error_code, answer.low_watermark) == (code, -1)
        assert await earliest(line) == 0


async def test_compacted_and_internal_topics_keep_their_records():
    async with serving() as (line, _node):
        await line.ask(
            ApiKey.CREATE_TOPICS,
            7,
            CreateTopicsRequest(
                topics=[
                    CreatableTopic("keys", 1, 1, [], [CreatableTopicConfig("cleanup.policy", "compact")]),
                    CreatableTopic("__consumer_offsets", 1),
                ]
            ),
        )
        assert (await delete(line, 0, topic="keys")).error_code == ErrorCode.POLICY_VIOLATION
        internal = await delete(line, 0, topic="__consumer_offsets")
        assert internal.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_who_may_not_delete_is_told_so(monkeypatch: pytest.MonkeyPatch):
    async def scenario() -> None:
        async with serving() as (line, _node):
            await with_records(line)
            assert (await delete(line, 1)).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED

    deny(monkeypatch, Operation.DELETE)
    run(scenario())


async def test_a_start_that_could_not_be_written_down_is_not_acknowledged():
    universe = Universe()
    async with serving(universe, durability="fsync") as (line, _node):
        await with_records(line)
        universe.disk.fail(0, errno.ENOSPC, on=("write",), lasting=True)
        answer = await delete(line, 3)
        assert (answer.error_code, answer.low_watermark) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
        universe.disk.heal()


async def test_a_full_disk_does_not_refuse_what_makes_room():
    universe = Universe()
    async with serving(universe) as (line, node):
        await with_records(line)
        (directory,) = node.parts.registry.directories
        universe.disk.fail(0, errno.ENOSPC, on=("write",), lasting=True)
        part = PartitionProduceData(index=0, records=batch_of([b"x"]))  # type: ignore[arg-type]  # as on the wire
        refused = await line.ask(
            ApiKey.PRODUCE,
            12,
            ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData("orders", partition_data=[part])]),
        )
        assert refused.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert not directory.health.writable
        assert (await delete(line, 3)).low_watermark == 3
        universe.disk.heal()


async def test_a_start_that_was_written_down_when_another_broker_leads_is_not_acknowledged():
    universe = Universe()
    universe.workers = PatientWorkers(universe.random, seconds_max=10.0)
    async with serving(universe, durability="fsync") as (line, node):
        await with_records(line)
        partition = node.parts.replicas.get("orders", 0)
        assert partition is not None
        deleting = asyncio.ensure_future(delete(line, 3))
        await asyncio.sleep(0.01)
        assert (partition.log.log_start_offset, deleting.done()) == (3, False)
        partition.resign(LeaderEpoch(partition.leader_epoch + 1))
        answer = await deleting
        assert (answer.error_code, answer.low_watermark) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
