"""Responses keep the order of their requests, and what waits is counted."""

from random import Random

from riverlog.broker.network.outbox import Outbox
from riverlog.broker.network.response_queue import ResponseQueue
from riverlog.broker.requests.context import PendingResponse
from riverlog.broker.requests.memory import RequestMemory
from riverlog.observe.stats import ConnectionStats, RequestStats
from riverlog.partitions.cold_reads import ColdReads
from tests.support.sockets import PuppetSocket
from tests.support.world import PatientWorkers

WINDOW = 1000


class Queue:
    """A response queue with its outbox, and requests of 100 bytes."""

    def __init__(self, socket_window: int = 1 << 30) -> None:
        self.socket = PuppetSocket(socket_window)
        self.stats = RequestStats("Test")
        memory = RequestMemory(
            1 << 24, window_bytes_max=WINDOW, stats=ConnectionStats(), later=lambda _seconds, _look: None
        )
        self.outbox = Outbox(self.socket, memory, ColdReads(PatientWorkers(Random(1))), lambda: None)
        self.responses = ResponseQueue(WINDOW, lambda: 2.0)

    def ask(self, answer: bytes | None = None) -> PendingResponse:
        pending = PendingResponse(None if answer is None else [answer])
        pending.stats = self.stats
        pending.received = pending.started = pending.handled = 1.0
        self.responses.append(pending, 100)
        return pending


def test_a_response_waits_for_those_before_it() -> None:
    queue = Queue()
    first, _second = queue.ask(), queue.ask(b"second")
    queue.responses.move_ready(queue.outbox)
    assert not queue.outbox.parts
    first.parts = [b"first "]
    queue.responses.move_ready(queue.outbox)
    queue.outbox.send()
    assert queue.socket.sent == b"first second"


def test_the_window_opens_when_all_bytes_are_taken() -> None:
    queue = Queue()
    queue.ask(b"1")
    queue.ask(b"2")
    assert queue.responses.window == WINDOW - 200
    queue.responses.move_ready(queue.outbox)
    assert queue.responses.window == WINDOW - 200
    queue.outbox.send()
    queue.responses.taken()
    assert queue.responses.window == WINDOW
    assert queue.stats.count == 2


def test_the_memory_of_a_response_counts_while_it_waits() -> None:
    queue = Queue()
    first, second = queue.ask(), queue.ask(b"x" * 500)
    queue.responses.hold(second, 500)
    queue.responses.hold(first, 10)
    queue.responses.hold(first, 20)
    assert queue.responses.held_bytes == 520
    first.parts = [b"y" * 20]
    queue.responses.move_ready(queue.outbox)
    assert queue.responses.held_bytes == 0


def test_small_responses_go_out_with_one_call() -> None:
    queue = Queue()
    for number in range(5):
        queue.responses.hold(queue.ask(b"%d" % number), 1)
    assert queue.responses.send_small(queue.socket)
    assert queue.socket.sent == b"01234"
    assert queue.socket.sends == 1
    assert (queue.responses.window, queue.responses.held_bytes) == (WINDOW, 0)
    assert queue.stats.count == 5


def test_a_queue_with_one_missing_or_large_is_not_sent_at_once() -> None:
    for answer in (None, b"x" * 2000):
        queue = Queue()
        queue.ask(b"1")
        queue.ask(answer)
        assert not queue.responses.send_small(queue.socket)
        assert queue.socket.sent == b""


def test_what_a_full_socket_left_of_small_responses_is_sent_once() -> None:
    queue = Queue(socket_window=4)
    for answer in (b"one", b"two", b"six"):
        queue.ask(answer)
    assert not queue.responses.send_small(queue.socket)
    queue.responses.move_ready(queue.outbox)
    queue.socket.take(100)
    queue.outbox.send()
    assert queue.socket.sent == b"onetwosix"


def test_who_waits_is_forgotten_at_the_end() -> None:
    class Owner:
        def response_ready(self) -> None:
            raise AssertionError("nobody waits")

        def fail(self, bug: BaseException) -> None:
            raise bug

    queue = Queue()
    pending = queue.ask()
    pending.owner = Owner()
    queue.responses.abandon()
    assert pending.owner is None
    assert not queue.responses.waiting
