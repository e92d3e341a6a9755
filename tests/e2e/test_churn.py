"""Topics of one name that are made, written, waited for, deleted and made again, on a real node with compaction and
flushes by time: its log directory stays online, nobody sees a record of another topic, and others lose nothing.

`CHURN_ROUNDS=500` makes it long.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from riverlog import Admin, Consumer, Producer
from riverlog.client.errors import KafkaError
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.headers import decode_response, encode_request
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.support.node import Node

FETCH: Final = API_BY_KEY[ApiKey.FETCH]
FETCH_VERSION: Final = 13
API_VERSIONS: Final = API_BY_KEY[ApiKey.API_VERSIONS]
ANSWER_SECONDS_MAX: Final = 60.0
ROUNDS: Final = int(os.environ.get("CHURN_ROUNDS", "20"))
RECORDS: Final = 40
STEADY: Final = TopicPartition("steady", 0)
KINDS: Final = (
    {"cleanup.policy": "delete", "flush.messages": "1"},
    {"cleanup.policy": "compact", "flush.ms": "1", "min.cleanable.dirty.ratio": "0.01", "max.compaction.lag.ms": "1"},
    {"cleanup.policy": "delete", "retention.ms": "1", "file.delete.delay.ms": "0", "flush.ms": "1"},
)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    settings = {
        "log.cleaner.backoff.ms": "10",
        "log.retention.check.interval.ms": "50",
        "log.flush.offset.checkpoint.interval.ms": "50",
        "log.segment.bytes": "2000",
    }
    with Node(tmp_path, settings=settings) as node:
        yield node


async def come_and_go(node: Node, name: str) -> None:
    """Make a topic, let somebody wait for more than it has, delete it under them, and begin again: often at once."""
    async with Admin(node.bootstrap) as admin, Producer(node.bootstrap, linger_ms=0) as producer:
        for life in range(ROUNDS):
            made = await admin.create_topic(name, partitions=2, configs=KINDS[life % len(KINDS)])
            reading = asyncio.create_task(read_for_ever(node, name, life))
            for number in range(RECORDS):
                value = b"%d " % life + b"." * 1_000
                await producer.send(name, key=b"%d" % (number % 3), value=value, partition=number % 2)
            count = 1 + life // 2 % 2
            waiting = await wait_for_more(node, made.topic_id, [RECORDS // 2 - 1] * count)
            await admin.list_topics()  # a turn of the node's later the fetch waits there
            await admin.delete_topics(name)
            if life % 2:
                await admin.create_topic(name, partitions=2)
                await producer.send(name, b"of another topic" * 100, partition=0)
            assert await waiting == [ErrorCode.UNKNOWN_TOPIC_ID] * count
            if life % 2:
                await admin.delete_topics(name)
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading


async def wait_for_more(node: Node, topic_id: UUID, offsets: list[int]) -> "asyncio.Task[list[int]]":
    """Ask for more than a topic has, for minutes; the task returns how each partition is answered."""
    parts = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index, offset in enumerate(offsets)
    ]
    asked = FetchRequest(
        max_wait_ms=240_000,
        min_bytes=1_000_000,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic_id=topic_id, partitions=parts)],
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
    writer.write(encode_request(API_VERSIONS, 3, 0, "peer", ApiVersionsRequest()))
    await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
    writer.write(encode_request(FETCH, FETCH_VERSION, 1, "peer", asked))
    await writer.drain()
    return asyncio.create_task(codes(reader, writer))


async def codes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> list[int]:
    try:
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            answer = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
        _, response = decode_response(FETCH, FETCH_VERSION, answer)
        return [part.error_code for part in response.responses[0].partitions]
    finally:
        writer.close()


async def read_for_ever(node: Node, name: str, life: int) -> None:
    with suppress(KafkaError):  # the topic is gone
        async with Consumer(node.bootstrap, auto_offset_reset="earliest", fetch_bytes_min=1_000_000) as consumer:
            consumer.assign([TopicPartition(name, 0), TopicPartition(name, 1)])
            while True:
                for record in await consumer.poll(timeout_ms=1_000):
                    # It reads by name: where it was slow, that is another topic by now, if this life has made one.
                    expected = (b"%d " % life, b"of another topic")[: 1 + life % 2]
                    assert (record.value or b"").startswith(expected)


async def be_honest(node: Node, over: asyncio.Event) -> int:
    async with Producer(node.bootstrap) as producer:
        sent = 0
        while not over.is_set():
            await producer.send(STEADY.topic, b"%d" % sent, partition=0)
            sent += 1
    return sent


async def read_back(node: Node, count: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    async with Consumer(node.bootstrap) as consumer:
        consumer.assign([STEADY])
        await consumer.seek_to_beginning(STEADY)
        while len(values) < count and (records := await consumer.poll(timeout_ms=5_000)):
            values += [record.value for record in records]
    return values


def test_topics_that_come_and_go_harm_nobody(node: Node) -> None:
    async def scenario() -> None:
        over = asyncio.Event()
        async with Admin(node.bootstrap) as admin:
            await admin.create_topic(STEADY.topic, partitions=1)
        honest = asyncio.create_task(be_honest(node, over))
        await asyncio.gather(*(come_and_go(node, name) for name in ("first", "second")))
        over.set()
        sent = await honest
        assert sent > ROUNDS
        assert await read_back(node, sent) == [b"%d" % number for number in range(sent)]

    asyncio.run(scenario())
    log = (node.folder / "node.log").read_text()
    assert "offline" not in log
    assert "contained" not in log
    assert "damage" not in log
    assert node.stop() == 0
