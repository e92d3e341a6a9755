"""Many producers with large bursts at a slow disk: memory stays within its bound, others are served, nothing is lost.

`PRODUCERS=200` is the long form.
"""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from riverlog import Consumer, Producer
from riverlog.client.network.connection import Connection
from riverlog.model.ids import TopicPartition
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.headers import decode_response, encode_request
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.e2e.clients import create_topic
from tests.support.batches import batch_of
from tests.support.node import Node
from tests.support.slow_disk import NodeOnSlowDisk

MIB: Final = 1024 * 1024
PRODUCERS: Final = int(os.environ.get("PRODUCERS", "40"))
PARTITIONS: Final = 8
BURST: Final = 8 * MIB
MEMORY: Final = 32 * MIB
WINDOW: Final = 4 * MIB
SECONDS_MAX: Final = 240.0

MEMORY_BYTES_MAX: Final = 64 * MIB + MEMORY + 2 * BURST + (PRODUCERS + 10) * 8 * 1024
"""What docs/operations.md says that a node may hold with these settings."""

PRODUCE: Final = API_BY_KEY[ApiKey.PRODUCE]
SETTINGS: Final = {
    "durability": "fsync",
    "message.max.bytes": str(2 * BURST),
    "queued.max.request.bytes": str(MEMORY),
    "connection.window.bytes": str(WINDOW),
    "log.segment.bytes": str(64 * MIB),
}


@pytest.mark.timeout(600)
def test_bursts_at_a_slow_disk_stay_within_the_memory_and_others_are_served(tmp_path: Path) -> None:
    with NodeOnSlowDisk(tmp_path, settings=SETTINGS) as node:
        create_topic(node.bootstrap, "bursts", partitions=PARTITIONS)
        create_topic(node.bootstrap, "orders")
        create_topic(node.bootstrap, "ours", partitions=PARTITIONS)
        before = memory(node, "VmRSS")
        began = time.monotonic()
        with bursting(node) as offsets:
            writes, reads = asyncio.run(be_served(node.bootstrap, offsets))
            acknowledged = [offset.result(SECONDS_MAX) for offset in offsets]
        seconds = time.monotonic() - began
        most = memory(node, "VmHWM")
        print(
            f"\n{PRODUCERS} producers, {PRODUCERS * BURST // MIB} MiB in {seconds:.1f} s; the node took at most "
            f"{most / MIB:.0f} of {MEMORY_BYTES_MAX / MIB:.0f} MiB; beside it "
            f"{told(writes)} for small writes, {told(reads)} for reads"
        )
        assert most < MEMORY_BYTES_MAX
        assert most > before + BURST, "the bursts were never in the node's memory"
        assert asyncio.run(read_back(node.bootstrap)) == sorted(acknowledged)


def test_our_client_pauses_while_others_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    send = Connection.send

    def watched(self: Connection, message: object, **more: Any) -> "asyncio.Future[Any]":
        alone = not self.in_flight
        answer = send(self, message, **more)
        if isinstance(message, ProduceRequest) and not alone:  # one request may be larger if no other is under way
            assert self._window is not None
            sent.append((self._unanswered_bytes, self._window))
        return answer

    async def produce_much(bootstrap: str) -> None:
        async with Producer(bootstrap, idempotent=False, batch_bytes_max=MIB // 4) as producer:
            for number in range(4 * WINDOW // (MIB // 8)):
                producer.send_soon("ours", bytes(MIB // 8), partition=number % PARTITIONS)
            await producer.flush()

    monkeypatch.setattr(Connection, "send", watched)
    with NodeOnSlowDisk(tmp_path, settings=SETTINGS) as node:
        create_topic(node.bootstrap, "bursts", partitions=PARTITIONS)
        create_topic(node.bootstrap, "ours", partitions=PARTITIONS)
        with bursting(node, count=12) as offsets:
            asyncio.run(produce_much(node.bootstrap))
            assert len({offset.result(SECONDS_MAX) for offset in offsets}) == 12
    assert sent
    assert all(unanswered <= window <= WINDOW for unanswered, window in sent)


@contextmanager
def bursting(node: Node, count: int = PRODUCERS) -> Iterator[list[Future[tuple[int, int]]]]:
    """Make so many producers send a burst each, all at once; return the partitions and offsets they are told."""
    records = batch_of([bytes(BURST)])
    bursts = [
        encode_request(PRODUCE, 9, 1, "greedy", ProduceRequest(acks=-1, timeout_ms=600_000, topic_data=[topic]))
        for topic in (
            TopicProduceData("bursts", partition_data=[PartitionProduceData(index=index, records=records)])
            for index in range(PARTITIONS)
        )
    ]
    together = threading.Barrier(count)
    with ThreadPoolExecutor(count) as pool:
        yield [pool.submit(produce, node.port, bursts[number % PARTITIONS], together) for number in range(count)]


def produce(port: int, burst: bytes, together: threading.Barrier) -> tuple[int, int]:
    """Send one burst when all are ready; give the partition and the offset of its answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX) as line:
        together.wait()
        line.sendall(burst)
        answer = line.makefile("rb")
        length = int.from_bytes(answer.read(4), "big")
        _, response = decode_response(PRODUCE, 9, answer.read(length))
        (partition,) = response.responses[0].partition_responses
        assert partition.error_code == 0
        return partition.index, partition.base_offset


async def be_served(bootstrap: str, offsets: list[Future[tuple[int, int]]]) -> tuple[list[float], list[float]]:
    """Write and read small records until the others are done; give how long each took."""
    writes, reads = [], []
    orders = TopicPartition("orders", 0)
    async with asyncio.timeout(SECONDS_MAX), Producer(bootstrap) as producer, Consumer(bootstrap) as consumer:
        consumer.assign([orders])
        await consumer.seek_to_beginning(orders)
        while not (writes and all(offset.done() for offset in offsets)):
            began = time.monotonic()
            await producer.send("orders", b"%d" % len(writes), partition=0)
            writes.append(time.monotonic() - began)
            began = time.monotonic()
            while not (records := await consumer.poll(timeout_ms=1_000)):
                pass
            reads.append(time.monotonic() - began)
            assert [record.value for record in records] == [b"%d" % (len(writes) - 1)]
    return writes, reads


async def read_back(bootstrap: str) -> list[tuple[int, int]]:
    """Return partition and offset of all bursts that can be read."""
    found: list[tuple[int, int]] = []
    partitions = [TopicPartition("bursts", index) for index in range(PARTITIONS)]
    async with asyncio.timeout(SECONDS_MAX), Consumer(bootstrap) as consumer:
        consumer.assign(partitions)
        for partition in partitions:
            await consumer.seek_to_beginning(partition)
        while len(found) < PRODUCERS and (records := await consumer.poll(timeout_ms=20_000, max_records=1)):
            assert records[0].value == bytes(BURST)
            found.append((records[0].partition, records[0].offset))
    return sorted(found)


def told(latencies: list[float]) -> str:
    """Return how long something took."""
    latencies = sorted(latencies)
    return f"{latencies[len(latencies) // 2] * 1000:.0f} ms at the median and {latencies[-1] * 1000:.0f} at most"


def memory(node: Node, what: str) -> int:
    """Return what the system counts of the node: VmRSS is its resident memory now, VmHWM the most that it ever was."""
    status = Path(f"/proc/{node.pid}/status").read_text()
    return int(status.split(f"{what}:")[1].split()[0]) * 1024
