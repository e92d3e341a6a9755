"""Fetch without a client: whole answers received into one buffer and looked at only for their error code."""

import itertools
import socket
from collections import deque
from typing import Final

from bench import loadgen, machine
from bench.clients import Moved
from bench.frames import CORRELATION_POSITION, fetch_load, produce_load
from bench.trial import Failed, Node, Stopwatch

IN_FLIGHT: Final = 2
ANSWER_SECONDS_MAX: Final = 30
BUFFER_BYTES: Final = 2 << 20
FILL_SECONDS_MAX: Final = 60


def fill(node: Node, topic: str, *, batches: int, records: int, value_bytes: int) -> None:
    """Write batches of equal size into partition 0 of a topic."""
    load = produce_load(topic, records=records, value_bytes=value_bytes)
    loadgen.replay(load, node, in_flight=min(batches, 4), seconds=FILL_SECONDS_MAX, requests_max=batches)


def fetch_around(node: Node, topic: str, *, batches: int, records: int, seconds: float) -> Moved:
    """Fetch a topic batch by batch, round and round, with two requests in flight."""
    loads = [fetch_load(topic, offset=number * records) for number in range(batches)]
    buffer = memoryview(bytearray(BUFFER_BYTES))
    received = answered = 0
    with socket.create_connection((node.host, node.port), timeout=ANSWER_SECONDS_MAX) as connection:
        stopwatch = Stopwatch(node)
        deadline = machine.now() + seconds
        pending: deque[int] = deque()
        for correlation in itertools.count():
            if machine.now() < deadline:
                request = bytearray(loads[correlation % batches].request)
                request[CORRELATION_POSITION : CORRELATION_POSITION + 4] = correlation.to_bytes(4, "big")
                connection.sendall(request)
                pending.append(correlation)
            elif not pending:
                break
            if len(pending) == IN_FLIGHT or machine.now() >= deadline:
                size = _answer(connection, buffer)
                due = pending.popleft()
                _check(buffer[:size], due, loads[due % batches].error_position)
                received += size
                answered += 1
        stopwatch.stop()
    return Moved(answered * records, received, stopwatch.seconds, stopwatch.cpu_seconds)


def _answer(connection: socket.socket, buffer: memoryview) -> int:
    """Receive one answer without its length; give its size."""
    _receive(connection, buffer[:4])
    size = int.from_bytes(buffer[:4], "big")
    if size > len(buffer):
        raise Failed(f"an answer to Fetch has {size} bytes")
    _receive(connection, buffer[:size])
    return size


def _receive(connection: socket.socket, room: memoryview) -> None:
    while room:
        count = connection.recv_into(room)
        if not count:
            raise Failed("the broker hung up in the middle of an answer")
        room = room[count:]


def _check(answer: memoryview, correlation: int, error_position: int) -> None:
    if int.from_bytes(answer[:4], "big") != correlation:
        raise Failed("an answer to Fetch came out of order")
    if code := int.from_bytes(answer[error_position : error_position + 2], "big", signed=True):
        raise Failed(f"Fetch was answered with error code {code}")
