"""The door: how many come in, how long they may be silent, and how it closes."""

import asyncio
import errno

import pytest

from riverlog.model.descriptors import DescriptorShares
from riverlog.observe.stats import CloseReason
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.headers import encode_request
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.asking import connected, serving
from tests.support.virtual_time import run
from tests.support.world import Universe


async def test_one_client_too_many_is_turned_away() -> None:
    universe = Universe()
    async with serving(universe, max_connections="2") as (_line, node):
        await connected(universe)
        third = await connected(universe)
        await asyncio.wait_for(third.ended.wait(), 5)
        assert node.stats.connections.refused == 1
        assert node.stats.connections.open == 2


async def test_there_are_no_more_clients_than_descriptors() -> None:
    universe = Universe()
    universe.descriptors_max = 100
    node = universe.node()
    await node.start()
    clients = [await connected(universe) for _ in range(20)]
    await asyncio.sleep(1)
    assert node.stats.connections.open == DescriptorShares.of(100).connections < 20
    assert node.stats.connections.refused == sum(each.ended.is_set() for each in clients) > 0
    await node.stop()


def test_who_cannot_be_accepted_is_counted_and_said_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        universe = Universe()
        async with serving(universe) as (line, node):
            (listener,) = universe.network._listeners.values()
            for _ in range(600):  # a minute and a bit
                listener.held_up(OSError(errno.EMFILE, "Too many open files"))
                await asyncio.sleep(0.101)
            assert node.stats.connections.accepts_held_up == 600
            await line.ask(ApiKey.METADATA, 12, MetadataRequest(topics=[]))

    run(scenario())
    assert sum("no connection can be accepted" in record.getMessage() for record in caplog.records) == 2


async def test_silence_has_an_end() -> None:
    async with serving(connections_max_idle_ms="60000") as (line, node):
        await asyncio.sleep(30)
        await line.ask(ApiKey.METADATA, 12, MetadataRequest(topics=[]))
        await asyncio.sleep(50)
        assert not line.ended.is_set()
        await asyncio.sleep(20)
        assert line.ended.is_set()
        assert node.stats.connections.closed[CloseReason.IDLE] == 1


async def test_a_slow_reader_is_not_silent() -> None:
    universe = Universe()
    async with serving(universe, connections_max_idle_ms="60000") as (_line, node):
        topics = [MetadataRequestTopic(name=f"{number:x>200}") for number in range(20_000)]
        asked = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        socket = await universe.network.connect("node", 9092)
        unsent = memoryview(encode_request(API_BY_KEY[ApiKey.METADATA], 12, 1, "slow", asked))
        while unsent:
            try:
                unsent = unsent[socket.send(unsent) :]
            except BlockingIOError:
                await asyncio.sleep(0.01)
        room = memoryview(bytearray(64 * 1024))
        received, began = 0, asyncio.get_running_loop().time()
        while received < 4_000_000:
            await asyncio.sleep(20)
            received += (count := socket.receive_into(room))
            assert count, "the node ended the connection"
        assert asyncio.get_running_loop().time() - began > 600
        assert node.stats.connections.closed[CloseReason.IDLE] == 1, "the other one, which said nothing"


async def test_stopping_answers_those_who_wait_at_once() -> None:
    universe = Universe()
    node = universe.node()
    await node.start()
    line = await connected(universe)
    await line.ask(ApiKey.METADATA, 12, MetadataRequest(topics=[MetadataRequestTopic(name="orders")]))
    part = FetchPartition(partition=0, partition_max_bytes=1_000)
    asked = FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=[FetchTopic(topic="orders", partitions=[part])])
    waiting = line.send(ApiKey.FETCH, 12, asked)
    await asyncio.sleep(0.1)
    before = asyncio.get_running_loop().time()
    await node.stop()
    await asyncio.sleep(0.1)
    assert waiting.done()
    assert asyncio.get_running_loop().time() - before < 1
    assert line.ended.is_set()
