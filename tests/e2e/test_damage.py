"""A byte rots in an old segment of a real node: real clients are told, and everything around it is served."""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import KafkaError as ConfluentError
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as PythonPartition
from kafka.errors import KafkaError as PythonError

from riverlog import Admin, Consumer, Producer
from riverlog.client.errors import CorruptRecords
from riverlog.model.ids import TopicPartition
from tests.support.node import Node
from tests.support.waiting import until

ORDERS = TopicPartition("orders", 0)
RECORDS = 400
LOST = 100
"""The one damaged batch has this one record."""
WAIT_SECONDS_MAX = 30.0


async def write(node: Node) -> None:
    async with Admin(node.bootstrap) as admin:
        await admin.create_topic("orders", partitions=1, configs={"segment.bytes": "20000"})
    async with Producer(node.bootstrap) as producer:
        for number in range(RECORDS):
            await producer.send("orders", value=b"%03d" % number * 30)


def rot(node: Node) -> Path:
    """Flip a byte of the record with offset LOST, in its file."""
    folder = node.data / "orders-0"
    path = max(path for path in folder.glob("*.log") if int(path.stem) <= LOST)
    content = bytearray(path.read_bytes())
    position = content.index(b"%03d" % LOST * 30)
    with path.open("r+b") as file:
        file.seek(position)
        file.write(b"X")
    return path


async def read_from(node: Node, offset: int) -> list[int]:
    found: list[int] = []
    async with Consumer(node.bootstrap) as consumer:
        consumer.assign([ORDERS])
        await consumer.seek(ORDERS, offset)
        while not found or found[-1] < RECORDS - 1:
            found += [record.offset for record in await consumer.poll(timeout_ms=1_000)]
    return found


def confluent(node: Node, offset: int) -> tuple[list[int], object]:
    """Read on from an offset until the end or an error."""
    consumer = ConfluentConsumer({"bootstrap.servers": node.bootstrap, "group.id": "g", "enable.auto.commit": False})
    found: list[int] = []
    error: object = None
    try:
        consumer.assign([ConfluentPartition("orders", 0, offset)])
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while time.monotonic() < deadline and error is None and (not found or found[-1] < RECORDS - 1):
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error() is None:
                found.append(message.offset())
            else:
                error = message.error().code()
    finally:
        consumer.close()
    return found, error


def kafka_python(node: Node, offset: int) -> tuple[list[int], object]:
    consumer = KafkaConsumer(bootstrap_servers=node.bootstrap, enable_auto_commit=False)
    found: list[int] = []
    partition = PythonPartition("orders", 0)
    try:
        consumer.assign([partition])
        consumer.seek(partition, offset)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and (not found or found[-1] < RECORDS - 1):
            for records in consumer.poll(timeout_ms=500).values():
                found += [record.offset for record in records]
    except PythonError as error:
        return found, error
    finally:
        consumer.close()
    return found, None


def judge(node: Node) -> None:
    """Look at the damaged partition through several clients."""
    with pytest.raises(CorruptRecords, match=f"offset {LOST} of orders-0"):
        asyncio.run(read_from(node, 0))
    assert asyncio.run(read_from(node, LOST + 1)) == list(range(LOST + 1, RECORDS))
    assert confluent(node, 0) == (list(range(LOST)), ConfluentError.INVALID_MSG)
    assert confluent(node, LOST + 1) == (list(range(LOST + 1, RECORDS)), None)
    found, _ = kafka_python(node, 0)
    assert found == list(range(LOST)), "it stops there, whatever it makes of the error"
    assert kafka_python(node, LOST + 1)[0] == list(range(LOST + 1, RECORDS))


def test_rot_while_the_node_is_stopped(tmp_path: Path) -> None:
    with Node(tmp_path) as node:
        asyncio.run(write(node))
        assert node.stop() == 0
        path = rot(node)
        node.start()
        judge(node)
        assert node.stop() == 0
        assert (path.parent / "quarantine").exists()
        dump = [sys.executable, "-m", "riverlog", "log", "dump", "-q", str(path.parent), "-o", "json"]
        dumped = subprocess.run(dump, capture_output=True, text=True, check=False)
        assert dumped.returncode == 5
        (row,) = [row for line in dumped.stdout.splitlines() if (row := json.loads(line))["kind"] == "quarantine"]
        assert (row["segment"], row["first_offset"], row["last_offset"]) == (str(path), LOST, LOST)
        node.start()
        judge(node)


def test_rot_while_the_node_runs(tmp_path: Path) -> None:
    with Node(tmp_path, settings={"log.scrub.interval.ms": "200"}) as node:
        asyncio.run(write(node))
        rot(node)
        until(lambda: "damage found" in node.log_tail(), node.log_tail)
        judge(node)
