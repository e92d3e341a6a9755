"""Bytes leave in order and whole, in few system calls, however little the socket takes."""

import asyncio
from random import Random

import pytest

from riverlog.broker.limits import SEND_BYTES_PER_TURN_MAX
from riverlog.broker.network.outbox import Outbox
from riverlog.broker.requests.memory import RequestMemory
from riverlog.model.ports import FileRange
from riverlog.observe.stats import ConnectionStats
from riverlog.partitions.cold_reads import ColdReads
from tests.support.disk import MemoryDisk
from tests.support.sockets import PuppetSocket
from tests.support.world import PatientWorkers


class Sender:
    """An outbox on a puppet socket, that goes on sending when it can."""

    def __init__(self, window: int = 1 << 30) -> None:
        self.socket = PuppetSocket(window)
        self.memory = RequestMemory(
            1 << 24, window_bytes_max=1 << 22, stats=ConnectionStats(), later=lambda _seconds, _look: None
        )
        self.unblocked = 0
        self.outbox = Outbox(self.socket, self.memory, ColdReads(PatientWorkers(Random(1))), self._go_on)

    def _go_on(self) -> None:
        self.unblocked += 1
        self.outbox.send()


def test_small_responses_are_joined() -> None:
    sender = Sender()
    for _ in range(10):
        sender.outbox.put([b"head", b"body"])
    assert sender.outbox.unsent_bytes == 80
    sender.outbox.send()
    assert sender.socket.sent == b"headbody" * 10
    assert sender.socket.sends == 1
    assert sender.outbox.unsent_bytes == 0
    assert not sender.outbox.parts


def test_bytes_that_were_sent_are_not_joined_to_later() -> None:
    sender = Sender(window=3)
    sender.outbox.put([b"first"])
    sender.outbox.send()
    sender.outbox.put([b" second"])
    sender.socket.take(100)
    assert sender.socket.sent == b"first second"


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_what_a_full_socket_leaves_is_sent_when_it_takes_more(step: int) -> None:
    sender = Sender(window=0)
    parts = [bytes([number]) * 300 for number in range(10)]
    sender.outbox.put(parts)
    sender.outbox.send()
    assert sender.outbox.blocked
    assert sender.memory.answer_bytes == 3000
    while sender.outbox.parts:
        sender.socket.take(step)
    assert sender.socket.sent == b"".join(parts)
    assert sender.memory.answer_bytes == 0
    assert sender.socket.writable is None


def test_one_peer_gets_no_more_than_its_share_of_a_turn() -> None:
    sender = Sender()
    sender.outbox.put([bytes(SEND_BYTES_PER_TURN_MAX), bytes(SEND_BYTES_PER_TURN_MAX)])
    sender.outbox.send()
    assert len(sender.socket.sent) == SEND_BYTES_PER_TURN_MAX
    assert sender.outbox.blocked
    sender.socket.take(0)
    assert len(sender.socket.sent) == 2 * SEND_BYTES_PER_TURN_MAX


def test_a_file_that_is_not_in_memory_is_read_beside_the_loop_first() -> None:
    disk = MemoryDisk()
    file = disk.open("/x.log", create=True)
    file.write(0, [b"x" * 10_000])
    file.sync()
    disk.drop_cache()

    async def send() -> bytes:
        sender = Sender()
        sender.outbox.put([b"head", FileRange(file, 5, 9_000), b"tail"])
        sender.outbox.send()
        assert sender.socket.sent == b"head"
        await asyncio.sleep(0.1)
        assert sender.unblocked == 1
        return bytes(sender.socket.sent)

    assert asyncio.run(send()) == b"head" + b"x" * 9_000 + b"tail"


def test_a_file_that_ends_early_breaks_the_connection() -> None:
    disk = MemoryDisk()
    file = disk.open("/x.log", create=True)
    file.write(0, [b"short"])
    sender = Sender()
    sender.outbox.put([FileRange(file, 0, 100)])
    with pytest.raises(OSError, match="ends before the range"):
        sender.outbox.send()


def test_nobody_is_called_after_the_end() -> None:
    sender = Sender(window=0)
    sender.outbox.put([b"lost"])
    sender.outbox.send()
    callback = sender.socket.writable
    sender.outbox.clear()
    assert sender.memory.answer_bytes == 0
    assert callback is not None
    callback()
    assert sender.unblocked == 0
    assert sender.memory.answer_bytes == 0
