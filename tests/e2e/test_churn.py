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

import pytest

from riverlog import Admin, Consumer, Producer
from riverlog.client.errors import KafkaError
from riverlog.model.ids import TopicPartition
from tests.support.node import Node

ROUNDS: Final = int(os.environ.get("CHURN_ROUNDS", "40"))
RECORDS: Final = 12
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
    """Make a topic, let somebody wait for more than it has, delete it under them, and begin again."""
    async with Admin(node.bootstrap) as admin, Producer(node.bootstrap, linger_ms=0) as producer:
        for life in range(ROUNDS):
            await admin.create_topic(name, partitions=2, configs=KINDS[life % len(KINDS)])
            reading = asyncio.create_task(read_for_ever(node, name, life))
            for number in range(RECORDS):
                value = b"%d " % life + b"." * 300
                await producer.send(name, key=b"%d" % (number % 3), value=value, partition=number % 2)
            await admin.delete_topics(name)
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading


async def read_for_ever(node: Node, name: str, life: int) -> None:
    with suppress(KafkaError):  # the topic is gone
        async with Consumer(node.bootstrap, auto_offset_reset="earliest", fetch_bytes_min=1_000_000) as consumer:
            consumer.assign([TopicPartition(name, 0), TopicPartition(name, 1)])
            while True:
                for record in await consumer.poll(timeout_ms=1_000):
                    assert (record.value or b"").startswith(b"%d " % life)


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
