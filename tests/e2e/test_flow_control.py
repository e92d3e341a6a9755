"""Producers that send more at once than the node may hold: its memory stays bounded, and others are served."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.headers import decode_response, encode_request
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.e2e.clients import create_topic, send
from tests.support.batches import batch_of
from tests.support.node import Node

MIB: Final = 1024 * 1024
PRODUCERS: Final = 50
BURST: Final = 8 * MIB
MEMORY: Final = 32 * MIB
OVERHEAD: Final = 48 * MIB
"""What a node takes beside its request memory: a frame that moves to a larger buffer, and the allocator's slack."""

PRODUCE: Final = API_BY_KEY[ApiKey.PRODUCE]


def test_bursts_of_many_producers_stay_within_the_memory_for_requests(tmp_path: Path) -> None:
    settings = {
        "durability": "fsync",
        "message.max.bytes": str(2 * BURST),
        "queued.max.request.bytes": str(MEMORY),
        "log.segment.bytes": str(64 * MIB),
        "log.retention.bytes": str(64 * MIB),
    }
    with Node(tmp_path, settings=settings) as node:
        create_topic(node.bootstrap, "bursts")
        create_topic(node.bootstrap, "orders")
        send(node.bootstrap, "orders", [b"warm up"])
        before = memory(node, "VmRSS")
        data = PartitionProduceData(index=0, records=batch_of([bytes(BURST)]))
        request = ProduceRequest(
            acks=-1, timeout_ms=60_000, topic_data=[TopicProduceData("bursts", partition_data=[data])]
        )
        burst = encode_request(PRODUCE, 9, 1, "greedy", request)
        together = threading.Barrier(PRODUCERS)
        with ThreadPoolExecutor(PRODUCERS) as pool:
            errors = [pool.submit(produce, node.port, burst, together) for _ in range(PRODUCERS)]
            while not all(error.done() for error in errors):
                send(node.bootstrap, "orders", [b"others are served"])
            assert [error.result() for error in errors] == [0] * PRODUCERS
        grown = memory(node, "VmHWM") - before
        assert grown < MEMORY + OVERHEAD
        assert grown > BURST, "the bursts were never in the node's memory"


def produce(port: int, burst: bytes, together: threading.Barrier) -> int:
    """Send one burst when all are ready; give the error code of its answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
        together.wait()
        line.sendall(burst)
        answer = line.makefile("rb")
        length = int.from_bytes(answer.read(4), "big")
        _, response = decode_response(PRODUCE, 9, answer.read(length))
        return int(response.responses[0].partition_responses[0].error_code)


def memory(node: Node, what: str) -> int:
    """Give what the system counts of the node: VmRSS is its resident memory now, VmHWM the most that it ever was."""
    status = Path(f"/proc/{node.pid}/status").read_text()
    return int(status.split(f"{what}:")[1].split()[0]) * 1024
