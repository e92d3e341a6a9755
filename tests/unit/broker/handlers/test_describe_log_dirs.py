"""DescribeLogDirs."""

import errno
from typing import Any

import pytest

from riverlog.broker.limits import REQUEST_PORTION
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.asking import Line, serving
from tests.support.batches import batch_of
from tests.support.denial import deny
from tests.support.second_broker import SecondBroker
from tests.support.virtual_time import run
from tests.support.world import Universe


async def with_records(line: Line) -> int:
    """Create two topics and write to one partition; give how many bytes were written."""
    topics = [CreatableTopic("orders", 2), CreatableTopic("bills", 1)]
    await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=topics))
    return await produced(line)


async def produced(line: Line, topic: str = "orders") -> int:
    """Write to one partition; give how many bytes were written."""
    batch = batch_of([b"x"] * 10)
    part = PartitionProduceData(index=1, records=batch)  # type: ignore[arg-type]  # as on the wire
    data = [TopicProduceData(name=topic, partition_data=[part])]
    await line.ask(ApiKey.PRODUCE, 12, ProduceRequest(acks=-1, timeout_ms=1000, topic_data=data))
    return len(batch)


def sizes(response: Any) -> dict[tuple[str, int], int]:
    return {
        (topic.name, part.partition_index): part.partition_size
        for result in response.results
        for topic in result.topics
        for part in topic.partitions
    }


async def test_every_version_tells_where_partitions_are_and_how_large():
    async with serving() as (line, _node):
        written = await with_records(line)
        for version in range(1, 6):
            response = await line.ask(ApiKey.DESCRIBE_LOG_DIRS, version, DescribeLogDirsRequest(topics=None))
            assert [result.log_dir for result in response.results] == ["/data"]
            assert sizes(response) == {("orders", 0): 0, ("orders", 1): written, ("bills", 0): 0}


async def test_some_partitions_can_be_asked_for():
    async with serving() as (line, _node):
        written = await with_records(line)
        asked = [DescribableLogDirTopic("orders", [1, 7]), DescribableLogDirTopic("missing", [0])]
        response = await line.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=asked))
        assert sizes(response) == {("orders", 1): written}


async def test_several_directories_are_told_apart():
    async with serving(log_dirs="/data,/more") as (line, _node):
        await with_records(line)
        response = await line.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None))
        assert sorted(result.log_dir for result in response.results) == ["/data", "/more"]
        assert set(sizes(response)) == {("orders", 0), ("orders", 1), ("bills", 0)}


def test_who_may_not_describe_sees_nothing(monkeypatch: pytest.MonkeyPatch):
    async def scenario() -> None:
        async with serving() as (line, _node):
            response = await line.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None))
            assert (response.error_code, response.results) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])

    deny(monkeypatch, Operation.DESCRIBE)
    run(scenario())


async def test_a_full_directory_has_no_room_left():
    async with serving() as (line, node):
        (directory,) = node.parts.registry.directories
        response = await line.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=[]))
        assert 0 < response.results[0].usable_bytes < response.results[0].total_bytes
        assert node.not_ready() is None
        directory.health.failed(OSError(errno.ENOSPC, "no space left"))
        response = await line.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=[]))
        assert (response.results[0].error_code, response.results[0].usable_bytes) == (ErrorCode.NONE, 0)
        assert "is full" in (node.not_ready() or "")


async def test_replicas_of_what_another_broker_leads_are_described():
    async with serving() as (line, node):
        other = await SecondBroker.join(node)
        await other.create("orders", (2, 1), (2, 1))
        await other.create("bills", (2,))
        await other.fence()
        written = await produced(line)
        await other.lead("orders", 1)
        response = await line.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None))
        assert sizes(response) == {("orders", 0): 0, ("orders", 1): written}


@pytest.mark.parametrize("count", [REQUEST_PORTION - 1, REQUEST_PORTION, 2 * REQUEST_PORTION + 1])
async def test_many_partitions_are_described_in_several_turns(count: int):
    async with serving() as (line, _node):
        await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("many", count)]))
        written = await produced(line, "many")
        response = await line.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None))
        assert sizes(response) == {("many", index): written if index == 1 else 0 for index in range(count)}


async def test_a_replica_that_cannot_be_looked_at_is_told_for_its_directory():
    universe = Universe()
    async with serving(universe) as (line, node):
        other = await SecondBroker.join(node)
        await other.create("orders", (2, 1), (2, 1))
        await other.fence()
        await produced(line)
        await other.lead("orders", 1)
        await universe.kill()
    async with serving(universe) as (line, _node):
        universe.disk.fail(0, errno.EMFILE, on=("open",), lasting=True)
        response = await line.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None))
        assert [(each.log_dir, each.error_code, each.topics) for each in response.results] == [
            ("/data", ErrorCode.KAFKA_STORAGE_ERROR, [])
        ]
        universe.disk.heal()
        response = await line.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None))
        assert response.results[0].error_code == ErrorCode.NONE
