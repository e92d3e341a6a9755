"""Answers to Fetch are received whole and believed only in order and without an error."""

import contextlib
import socket
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.fetches import fetch_around
from bench.frames import CORRELATION_POSITION, fetch_load
from bench.trial import Failed

BODY_BYTES = 300_000


@dataclass(slots=True)
class Served:
    """A node in a thread that answers every Fetch with the same bytes."""

    port: int
    host: str = "127.0.0.1"
    pid: int = 1
    data: Path = Path()

    def stop(self) -> None: ...

    def kill(self) -> None: ...


def answer_all(listening: socket.socket, *, error_code: int, skip: int) -> None:
    """Answer each request with its own correlation id plus `skip`."""
    error_position = fetch_load("orders", offset=0).error_position
    length = len(fetch_load("orders", offset=0).request)
    connection, _ = listening.accept()
    with connection, contextlib.suppress(ConnectionError):  # a run that failed hangs up
        while len(request := connection.recv(length, socket.MSG_WAITALL)) == length:
            correlation = int.from_bytes(request[CORRELATION_POSITION : CORRELATION_POSITION + 4], "big")
            body = bytearray(BODY_BYTES)
            body[:4] = (correlation + skip).to_bytes(4, "big")
            body[error_position : error_position + 2] = error_code.to_bytes(2, "big")
            connection.sendall(len(body).to_bytes(4, "big") + body)


def fetched(*, error_code: int = 0, skip: int = 0) -> int:
    """Fetch from such a node for a moment; give how many bytes came."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        arguments = {"error_code": error_code, "skip": skip}
        serving = threading.Thread(target=answer_all, args=(listening,), kwargs=arguments)
        serving.start()
        try:
            moved = fetch_around(Served(listening.getsockname()[1]), "orders", batches=3, records=10, seconds=0.01)
        finally:
            serving.join()
    assert moved.records * BODY_BYTES == moved.bytes * 10
    return moved.bytes


def test_every_answer_is_received_whole() -> None:
    assert fetched() >= BODY_BYTES


def test_an_error_code_fails_the_run() -> None:
    with pytest.raises(Failed, match="Fetch was answered with error code 6"):
        fetched(error_code=6)


def test_answers_out_of_order_fail_the_run() -> None:
    with pytest.raises(Failed, match="out of order"):
        fetched(skip=1)
