"""A whole node under producers that send more than it can hold: memory stays bounded, everybody gets on."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import pytest

from riverlog import Admin, Producer
from riverlog.client.network.connection import Connection
from riverlog.model.ids import Address
from riverlog.node import Node
from riverlog.observe.stats import CloseReason
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.framing import FrameBuffer
from riverlog.wire.headers import decode_response, encode_request
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from riverlog.wire.messages.metadata import MetadataRequest
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.asking import connected, serving
from tests.support.batches import batch_of
from tests.support.network import MemorySocket
from tests.support.world import Universe

T = TypeVar("T")

KIB: Final = 1024
MEMORY: Final = 1024 * KIB  # the smallest that can be set
BURST: Final = 80 * KIB
PRODUCERS: Final = 200
PRODUCE: Final = API_BY_KEY[ApiKey.PRODUCE]


class SlowWorkers:
    """The Workers port over a disk whose flushes take their time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def run(self, work: Callable[[], T]) -> Awaitable[T]:
        return self._later(work)

    def close(self) -> None:
        """Nothing runs beside the loop here."""

    async def _later(self, work: Callable[[], T]) -> T:
        await asyncio.sleep(self._seconds)
        return work()


class Greedy:
    """A producer that sends without a pause: whatever the socket takes, for as many requests as it was told."""

    def __init__(self, socket: MemorySocket, requests: int, *, partition: int, size: int = BURST) -> None:
        self._socket = socket
        self._frames = FrameBuffer(KIB * KIB)
        data = PartitionProduceData(index=partition, records=batch_of([bytes(size)]))
        request = ProduceRequest(
            acks=-1, timeout_ms=600_000, topic_data=[TopicProduceData(name="orders", partition_data=[data])]
        )
        self._unsent = memoryview(encode_request(PRODUCE, 9, 1, "greedy", request) * requests)
        self._missing = requests
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        socket.on_readable(self._readable)
        socket.on_writable(self._writable)

    def _writable(self) -> None:
        self._unsent = self._unsent[self._socket.send(self._unsent[: 64 * KIB]) :]
        if not self._unsent:
            self._socket.on_writable(None)

    def _readable(self) -> None:
        count = self._socket.receive_into(self._frames.room())
        assert count, "the node ended the connection"
        self._frames.received(count)
        for frame in self._frames.frames():
            _, response = decode_response(PRODUCE, 9, bytes(frame))
            assert response.responses[0].partition_responses[0].error_code == 0
            self._missing -= 1
        if not self._missing and not self.answered.done():
            self.answered.set_result(None)


async def greedy_producers(universe: Universe, count: int, requests: int) -> list[Greedy]:
    """Make many begin at the same moment."""
    sockets = await asyncio.gather(*(universe.network.connect("node", 9092) for _ in range(count)))
    return [Greedy(socket, requests, partition=number % 8) for number, socket in enumerate(sockets)]


async def watch(node: Node, seen: list[tuple[int, int]]) -> None:
    """Note the request memory and the connections held back after every step of a millisecond."""
    while True:
        seen.append((node.stats.connections.request_bytes, node.stats.connections.held_back))
        await asyncio.sleep(0.001)


async def orders(universe: Universe, partitions: int = 8) -> None:
    async with Admin("node:9092", ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=partitions)


def slow_universe(flush_seconds: float) -> Universe:
    universe = Universe()
    universe.workers = SlowWorkers(flush_seconds)
    universe.network.window_bytes = 32 * KIB  # a request takes several round trips to arrive
    return universe


async def test_greedy_producers_share_a_bounded_memory_and_others_go_on() -> None:
    universe = slow_universe(0.5)
    async with serving(universe, durability="fsync", queued_max_request_bytes=str(MEMORY)) as (line, node):
        await orders(universe)
        greedy = await greedy_producers(universe, PRODUCERS, 1)
        seen: list[tuple[int, int]] = []
        watcher = asyncio.create_task(watch(node, seen))
        finished = asyncio.gather(*(producer.answered for producer in greedy))
        loop = asyncio.get_running_loop()
        others = 0
        while not finished.done():
            began = loop.time()
            await line.ask(ApiKey.METADATA, 12, MetadataRequest(topics=[]))
            await line.ask(ApiKey.FETCH, 12, _large_fetch())
            assert loop.time() - began < 0.1
            others += 1
        await finished
        watcher.cancel()
        assert others > 10
        request_bytes, held_back = map(max, zip(*seen, strict=True))
        assert MEMORY // 2 < request_bytes <= MEMORY
        assert held_back > PRODUCERS // 2
        await asyncio.sleep(30)
        assert node.stats.connections.request_bytes == 0
        assert node.stats.connections.held_back == 0


async def test_nobody_waits_much_longer_than_the_others() -> None:
    universe = slow_universe(0.01)
    async with serving(universe, durability="fsync", queued_max_request_bytes=str(MEMORY)) as (_line, node):
        await orders(universe)
        endless = await greedy_producers(universe, 40, 10)
        seen: list[tuple[int, int]] = []
        watcher = asyncio.create_task(watch(node, seen))
        await asyncio.sleep(0.01)
        modest = Greedy(await universe.network.connect("node", 9092), 1, partition=0)
        await asyncio.wait_for(modest.answered, 2)
        watcher.cancel()
        assert max(held_back for _, held_back in seen) > 10
        assert not any(producer.answered.done() for producer in endless)
        await asyncio.gather(*(producer.answered for producer in endless))


async def test_a_connection_is_not_read_from_beyond_its_window() -> None:
    universe = slow_universe(10)
    window = 256 * KIB
    async with serving(universe, durability="fsync", connection_window_bytes=str(window)) as (line, node):
        await orders(universe)
        greedy = Greedy(await universe.network.connect("node", 9092), 20, partition=0, size=100 * KIB)
        await asyncio.sleep(5)
        partition = next(reading for reading in node.parts.metrics.partitions() if reading.partition == 0)
        assert partition.log_end_offset == 3  # the third overdraws the window
        assert node.stats.connections.held_back == 1
        await line.ask(ApiKey.METADATA, 12, MetadataRequest(topics=[]))
        await greedy.answered


async def test_one_request_may_be_larger_than_window_and_memory() -> None:
    universe = Universe()
    settings = {"queued_max_request_bytes": str(MEMORY), "connection_window_bytes": "65536"}
    async with serving(universe, message_max_bytes="4000000", **settings):
        await orders(universe)
        both = [Greedy(await universe.network.connect("node", 9092), 2, partition=0, size=3_000_000) for _ in range(2)]
        for producer in both:
            await producer.answered


async def test_who_keeps_others_waiting_for_a_request_that_does_not_come_is_sent_away() -> None:
    universe = Universe()
    universe.network.window_bytes = MEMORY
    async with serving(universe, queued_max_request_bytes=str(MEMORY)) as (_line, node):
        await orders(universe)
        slow = [await connected(universe) for _ in range(2)]
        begun = (430_000).to_bytes(4, "big") + encode_request(PRODUCE, 9, 1, "slow", ProduceRequest())[4:8]
        for line in slow:
            line.send_bytes(begun + bytes(429_000))
        await asyncio.sleep(0.1)
        assert node.stats.connections.request_bytes > 500_000
        greedy = Greedy(await universe.network.connect("node", 9092), 1, partition=0)

        async def trickle() -> None:
            while not all(line.ended.is_set() for line in slow):
                for line in slow:
                    if not line.ended.is_set():
                        line.send_bytes(b"x")
                await asyncio.sleep(0.5)

        trickling = asyncio.create_task(trickle())
        await asyncio.wait_for(greedy.answered, 30)
        trickling.cancel()
        assert node.stats.connections.closed[CloseReason.SLOW] >= 1


async def test_who_announces_much_and_sends_little_keeps_nobody_waiting() -> None:
    universe = Universe()
    async with serving(universe, queued_max_request_bytes=str(MEMORY)) as (_line, node):
        await orders(universe)
        begun = (100_000_000).to_bytes(4, "big") + encode_request(PRODUCE, 9, 1, "slow", ProduceRequest())[4:8]
        idle = [await connected(universe) for _ in range(8)]
        for line in idle:
            line.send_bytes(begun + bytes(66_000))
        await asyncio.sleep(0.01)
        assert node.stats.connections.request_bytes > MEMORY
        for _ in range(10):
            greedy = Greedy(await universe.network.connect("node", 9092), 1, partition=0)
            await asyncio.wait_for(greedy.answered, 4)
        assert sum(line.ended.is_set() for line in idle) < len(idle)


async def test_a_silent_half_of_a_request_costs_what_has_arrived() -> None:
    universe = Universe()
    async with serving(universe, queued_max_request_bytes=str(MEMORY)) as (_line, node):
        slow = await connected(universe)
        slow.send_bytes((700_000).to_bytes(4, "big") + bytes(20_000))
        await asyncio.sleep(0.1)
        assert node.stats.connections.request_bytes > 700_000
        await asyncio.sleep(20)
        assert node.stats.connections.request_bytes < 30_000
        assert not slow.ended.is_set()


@pytest.mark.parametrize("acks", ["all", 0])
async def test_our_client_pauses_before_its_bytes_queue_up(acks: Any) -> None:
    universe = slow_universe(0.2)
    window = 128 * KIB
    async with serving(universe, durability="fsync", connection_window_bytes=str(window)) as (_line, node):
        await orders(universe, partitions=4)
        under_way: list[int] = []
        send, send_unanswered = Connection.send, Connection.send_unanswered

        def watched(self: Connection, message: object, **more: Any) -> "asyncio.Future[Any]":
            answer = send(self, message, **more)
            under_way.append(self._unanswered_bytes)
            return answer

        def watched_unanswered(self: Connection, message: object) -> None:
            send_unanswered(self, message)
            under_way.append(self._unsent_bytes)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Connection, "send", watched)
            patch.setattr(Connection, "send_unanswered", watched_unanswered)
            async with Producer(
                "node:9092", ports=universe.ports, acks=acks, idempotent=False, batch_bytes_max=40 * KIB
            ) as producer:
                for number in range(200):
                    producer.send_soon("orders", bytes(8 * KIB), partition=number % 4)
                await producer.flush()
        assert node.stats.connections.held_back == 0
        if acks == "all":
            assert window // 2 < max(under_way) <= window
        else:
            assert max(under_way) < 2 * KIB * KIB


def _large_fetch() -> FetchRequest:
    """Ask for so many partitions that the request is larger than a connection's own memory."""
    partitions = [FetchPartition(partition=number % 8, partition_max_bytes=1) for number in range(600)]
    return FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic="orders", partitions=partitions)])


async def test_the_window_told_shrinks_while_others_wait() -> None:
    universe = slow_universe(0.05)
    async with serving(universe, durability="fsync", queued_max_request_bytes=str(MEMORY)) as (_line, node):
        await orders(universe)
        ours = await Connection.open(
            universe.network, Address("node", 9092), client_id="x", connect_seconds=5, request_seconds=30
        )
        assert ours._window == 16 * KIB * KIB
        greedy = await greedy_producers(universe, 20, 3)
        told = []
        while not all(producer.answered.done() for producer in greedy):
            await ours.request(MetadataRequest(topics=[]))
            told.append(ours._window)
        assert 64 * KIB in told
        await asyncio.sleep(1)
        await ours.request(MetadataRequest(topics=[]))
        assert ours._window == 16 * KIB * KIB
        assert node.stats.connections.held_back == 0
        ours.close()
