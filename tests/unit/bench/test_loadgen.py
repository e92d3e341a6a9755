"""The load generator keeps its window full, counts what came back, and trusts no answer."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench.loadgen import Load, replay
from bench.trial import Failed

GREETING = struct.pack(">ihhi", 8, 18, 0, 0)
REQUEST = struct.pack(">ihhi", 8, 0, 9, 0)
LOAD = Load([GREETING, GREETING], REQUEST, error_position=4)
Answer = Callable[[int, int], tuple[int, int]]
"""From a request's place on its connection and its correlation id to the answer's correlation id and error code."""


@dataclass
class Peer:
    """A server on loopback that answers every request, and the node that leads to it."""

    port: int
    host: str = "127.0.0.1"
    pid: int = 0
    data: Path = Path()
    requests: list[tuple[int, int]] = field(default_factory=list)
    """API key and correlation id of each request, as they came."""

    def stop(self) -> None: ...


@contextmanager
def serving(answer: Answer) -> Iterator[Peer]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        peer = Peer(listener.getsockname()[1])
        threads: list[threading.Thread] = []

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:  # the listener is shut down: the test is over
                    return
                threads.append(threading.Thread(target=_serve, args=(connection, peer, answer)))
                threads[-1].start()

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        try:
            yield peer
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for thread in [acceptor, *threads]:
                thread.join()


def _serve(connection: socket.socket, peer: Peer, answer: Answer) -> None:
    with connection:
        place = 0
        while frame := _frame(connection):
            key, _, correlation_id = struct.unpack(">hhi", frame)
            peer.requests.append((key, correlation_id))
            code = 0
            if key == 0:
                correlation_id, code = answer(place, correlation_id)
                place += 1
            try:
                connection.sendall(struct.pack(">iih", 6, correlation_id, code))
            except OSError:  # the generator has given up, as some tests want it to
                return


def _frame(connection: socket.socket) -> bytes:
    try:
        head = connection.recv(4, socket.MSG_WAITALL)
        return connection.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL) if head else b""
    except ConnectionResetError:
        return b""


def well(_: int, correlation_id: int) -> tuple[int, int]:
    return correlation_id, 0


def test_every_connection_greets_and_then_sends_numbered_requests() -> None:
    with serving(well) as peer:
        replayed = replay(LOAD, peer, connections=2, in_flight=3, seconds=10, requests_max=100)
    assert replayed.requests == 100
    assert 0 < replayed.seconds < 10
    assert 0 < replayed.p50_us <= replayed.p99_us <= replayed.max_us
    assert [key for key, _ in peer.requests].count(18) == 4
    produced = sorted(correlation_id for key, correlation_id in peer.requests if key == 0)
    assert len(produced) == 100
    assert produced[:4] == [0, 0, 1, 1]


def test_it_stops_when_its_time_is_over_and_collects_what_is_due() -> None:
    with serving(well) as peer:
        replayed = replay(LOAD, peer, connections=1, in_flight=5, seconds=0.05)
    produced = [correlation_id for key, correlation_id in peer.requests if key == 0]
    assert replayed.seconds == pytest.approx(0.05)
    assert 0 < replayed.requests <= len(produced)
    assert produced == list(range(len(produced)))


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (lambda place, id_: (id_, 7 if place == 3 else 0), "the broker answered with error code 7"),
        (lambda place, id_: (id_ + (place == 3), 0), "answer 4 came where 3 was due"),
    ],
)
def test_a_refusal_or_a_mix_up_fails_the_run(answer: Answer, complaint: str) -> None:
    with serving(answer) as peer, pytest.raises(Failed, match=complaint):
        replay(LOAD, peer, in_flight=2, seconds=5, requests_max=10)


def test_a_broker_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(Failed, match=r"cannot connect to 127\.0\.0\.1:1: Connection refused"):
        replay(LOAD, Peer(port=1), seconds=1)
