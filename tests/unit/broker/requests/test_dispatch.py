"""From a frame to its handler: what is not served ends the line, what is served keeps it."""

import asyncio

import pytest

from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.headers import encode_request, read_window
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.asking import connected, serving
from tests.support.batches import batch_of
from tests.support.world import Universe

GOOD = encode_request(API_BY_KEY[ApiKey.METADATA], 12, 1, "test", MetadataRequest(topics=[]))


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize(
    "frame",
    [
        framed(b"\x00\x63" + GOOD[6:]),
        framed(GOOD[4:6] + b"\x00\x63" + GOOD[8:]),
        framed(GOOD[4:6] + b"\xff\xff" + GOOD[8:]),
        framed(b"\x00\x00\x00\x02" + GOOD[8:]),
        framed(GOOD[4:-3]),
        framed(b"\x00"),
        b"\x00\x00\x00\x00",
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
    ids=["api", "version", "negative", "produce-2", "cut", "tiny", "zero", "minus", "huge", "http"],
)
async def test_what_cannot_be_read_ends_this_line_and_no_other(frame: bytes) -> None:
    universe = Universe()
    async with serving(universe) as (line, node):
        other = await connected(universe)
        other.send_bytes(frame)
        await asyncio.wait_for(other.ended.wait(), 5)
        assert (await line.ask(ApiKey.METADATA, 12, MetadataRequest(topics=[]))).brokers
        assert node.stats.connections.open == 1


async def test_requests_are_counted_by_api_with_their_errors() -> None:
    async with serving() as (line, node):
        for _ in range(3):
            await line.ask(ApiKey.METADATA, 12, MetadataRequest(topics=[]))
        await line.ask(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("", ""))
        assert node.stats.requests["Metadata"].count == 3
        assert sum(node.stats.requests["ApiVersions"].errors.values()) == 1


@pytest.mark.parametrize("durability", ["os", "fsync"])
async def test_every_answer_to_our_client_tells_the_window_and_no_other_answer_does(durability: str) -> None:
    """Produce by the short cut and later, Fetch with records, and an API whose handler holds the line."""
    requests = [
        (ApiKey.METADATA, 9, MetadataRequest(topics=[MetadataRequestTopic(name="orders")])),
        (ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=[CreatableTopic(name="more")])),
        (ApiKey.PRODUCE, 9, _produce(-1)),
        (ApiKey.PRODUCE, 9, _produce(1)),
        (ApiKey.FETCH, 12, _fetch()),
        (ApiKey.METADATA, 8, MetadataRequest(topics=[])),
    ]

    async def answers(universe: Universe, software: str) -> list[bytes]:
        line = await connected(universe)
        await line.ask(ApiKey.API_VERSIONS, 3, ApiVersionsRequest(software, "1"))
        for key, version, request in requests:
            await line.ask(key, version, request)
        return line.frames[1:]

    universe = Universe()
    async with serving(universe, durability=durability, connection_window_bytes="70000"):
        for software, window in (("riverlog", 70_000), ("librdkafka", None)):
            told = [
                read_window(API_BY_KEY[key], version, frame)
                for (key, version, _), frame in zip(requests, await answers(universe, software), strict=True)
            ]
            assert told == [window] * 5 + [None]


def _produce(acks: int) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=batch_of())
    return ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=[TopicProduceData("orders", partition_data=[data])])


def _fetch() -> FetchRequest:
    partition = FetchPartition(partition=0, partition_max_bytes=1_000)
    return FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic="orders", partitions=[partition])])
