"""A node and a single-node Apache Kafka take over each other's data folder and serve what the other stored there."""

import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.cache import cache_folder
from bench.nodes import DATA_NAME, HOST, BrokerProcess, free_port
from bench.peer import Kafka
from tests.conformance.adapters import CODECS, Deadline, Message, Placed, Protocol, Stored
from tests.conformance.adapters.foreign import JavaClient
from tests.conformance.behaviours import LONG_AGO_MS, odd_records
from tests.support.node import Node

DELETED_BELOW = 60
PROTOCOLS: tuple[Protocol, ...] = ("classic", "consumer")


@dataclass(frozen=True, slots=True)
class Handed:
    """A folder that Kafka left, and what Kafka itself served from it."""

    home: Path
    records: list[Stored]
    configs: dict[str, str | None]
    next_offsets: dict[Protocol, int]
    """Where a group of each protocol left off in the first partition."""


@pytest.fixture(scope="module", params=["stopped", "killed"])
def handed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Handed:
    """Make Kafka write a topic with every codec over several segments, and end it."""
    home: Path = tmp_path_factory.mktemp("kafka")
    kafka = Kafka(cache_folder())
    kafka.prepare()
    kafka.format(home)
    broker = kafka.start(home)
    client = JavaClient(f"{broker.host}:{broker.port}")
    try:
        client.create_topic("orders", partitions=2, configs={"segment.bytes": str(1024 * 1024), "retention.ms": "-1"})
        for codec in CODECS:
            client.produce("orders", _messages(codec), compression=codec, idempotent=True)
        client.produce("orders", [Message(b"x" * 400_000, partition=0) for _ in range(6)])
        records = [*client.consume("orders", 0, count=client.bounds("orders", 0)[1])]
        if request.param == "stopped":  # Kafka writes the log start down once a minute, and when it stops
            client.delete_records("orders", 0, DELETED_BELOW)
            records = records[DELETED_BELOW:]
        configs = client.configs("orders")
        next_offsets = {protocol: _read_in_group(client, protocol)[-1].offset + 1 for protocol in PROTOCOLS}
    finally:
        client.close()
        _end(broker, killed=request.param == "killed")
    assert len(list((home / DATA_NAME / "orders-0").glob("*.log"))) > 2
    return Handed(home, records, configs, next_offsets)


@pytest.fixture
def client(handed: Handed, tmp_path: Path) -> Iterator[JavaClient]:
    shutil.copytree(handed.home / DATA_NAME, tmp_path / "data")
    with Node(tmp_path, settings={"node.id": "1"}) as node:
        client = JavaClient(node.bootstrap)
        yield client
        client.close()
        assert node.stop() == 0, node.log_tail()


def test_a_node_serves_what_kafka_stored(handed: Handed, client: JavaClient) -> None:
    first, last = handed.records[0].offset, handed.records[-1].offset
    assert client.bounds("orders", 0) == (first, last + 1)
    assert client.bounds("orders", 1) == (0, 0)
    assert client.consume("orders", 0, offset=first, count=len(handed.records)) == handed.records
    configs = client.configs("orders")
    for name in ("segment.bytes", "retention.ms", "cleanup.policy", "max.message.bytes"):
        assert configs[name] == handed.configs[name]


def test_a_node_goes_on_where_kafka_ended(handed: Handed, client: JavaClient) -> None:
    end = handed.records[-1].offset + 1
    (placed,) = client.produce("orders", [Message(b"next", partition=0)], idempotent=True)
    assert placed.offset == end
    (record,) = client.consume("orders", 0, offset=end, count=1)
    assert record.value == b"next"
    wanted_ms = LONG_AGO_MS + 90
    first_since = next(record.offset for record in handed.records if record.timestamp_ms >= wanted_ms)
    assert client.offset_for_time("orders", 0, wanted_ms) == first_since


def test_a_node_keeps_kafka_s_groups(handed: Handed, client: JavaClient) -> None:
    client.produce("orders", [Message(b"next", partition=0)])
    for protocol in PROTOCOLS:
        assert _read_in_group(client, protocol)[0] == Placed(0, handed.next_offsets[protocol])


@pytest.mark.parametrize("ended", ["stopped", "killed"])
def test_kafka_goes_on_where_a_node_ended(tmp_path: Path, ended: str) -> None:
    with Node(tmp_path, settings={"node.id": "1"}) as node:
        client = JavaClient(node.bootstrap)
        client.create_topic("orders", configs={"segment.bytes": str(1024 * 1024), "retention.ms": "-1"})
        for codec in CODECS:
            client.produce("orders", _messages(codec), compression=codec, idempotent=True)
        end = client.bounds("orders", 0)[1]
        records = client.consume("orders", 0, count=end)
        next_offsets = {protocol: _read_in_group(client, protocol)[-1].offset + 1 for protocol in PROTOCOLS}
        client.close()
        if ended == "stopped":
            assert node.stop() == 0, node.log_tail()
    kafka = Kafka(cache_folder())
    kafka.prepare()
    (tmp_path / "server.properties").write_text("\n".join(kafka_settings(node.data)))
    broker = kafka.start(tmp_path)
    client = JavaClient(f"{broker.host}:{broker.port}")
    try:
        assert client.topics() == {"orders"}  # and the internal one of groups, which is not shown
        assert client.configs("orders")["segment.bytes"] == str(1024 * 1024)
        assert client.consume("orders", 0, count=end) == records
        (placed,) = client.produce("orders", [Message(b"next", partition=0)], idempotent=True)
        assert placed.offset == end
        for protocol in PROTOCOLS:
            assert _read_in_group(client, protocol)[0] == Placed(0, next_offsets[protocol])
    finally:
        client.close()
        broker.stop()


def _read_in_group(client: JavaClient, protocol: Protocol) -> list[Placed]:
    """Read some of the first partition as the only member of a group, and commit that."""
    member = client.join("orders", f"{protocol}-readers", protocol)
    deadline = Deadline()
    read: list[Placed] = []
    while not read and deadline.left():
        read += member.poll()
    member.commit()
    member.leave()
    return read


def kafka_settings(data: Path) -> list[str]:
    """Name the voters here: a node's metadata log does not."""
    controller = f"{HOST}:{free_port()}"
    return [
        "process.roles=broker,controller",
        "node.id=1",
        f"listeners=PLAINTEXT://{HOST}:{free_port()},CONTROLLER://{controller}",
        "controller.listener.names=CONTROLLER",
        f"controller.quorum.voters=1@{controller}",
        f"log.dirs={data}",
        "transaction.state.log.replication.factor=1",
        "transaction.state.log.min.isr=1",
    ]


def _messages(codec: str) -> list[Message]:
    many = [Message(f"{codec} {index} ".encode() * 20, key=b"%d" % index) for index in range(100)]
    return [
        Message(message.value, message.key, message.headers, LONG_AGO_MS + index, partition=0)
        for index, message in enumerate([*many, *odd_records(JavaClient(""))])
    ]


def _end(broker: BrokerProcess, *, killed: bool) -> None:
    if killed:
        os.kill(broker.pid, signal.SIGKILL)
    broker.stop()
