"""Hostile peers at the door of a real node, with a well-behaved client beside them.

Mutated frames, bytes that are no frames, lengths that lie, peers that trickle, stop half-way, never read, or come by
the thousand. The node must live on without an internal error, within its memory, and the honest client loses nothing:
every record it had acknowledged is read back, once and in order.
"""

import asyncio
import re
import resource
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from riverlog import Consumer, Producer
from riverlog.client.errors import KafkaError
from riverlog.model.ids import TopicPartition
from riverlog.wire.apis import APIS
from riverlog.wire.codec import MalformedMessage
from riverlog.wire.headers import encode_request
from tests.fuzz.boundaries import BoundaryRequests
from tests.fuzz.mutation import mutate
from tests.fuzz.seeds import requests
from tests.fuzz.targets import outcome
from tests.support.node import Node

STORM: Final = 2_000
ATTACKERS: Final = 16
READABLE: Final = 1_000
"""Mutated frames that can still be read, to send many of on one connection; each that is met takes another's place."""
BURST_FRAMES: Final = 40
FRESH_FRAMES: Final = 10
FRAME_BYTES_MAX: Final = 4_096
BOUNDARY_FRAMES: Final = 5
BOUNDARY_BYTES_MAX: Final = 200_000
_STORM_EVERY_FRAMES: Final = 50_000
MEMORY_BYTES_MAX: Final = 512 * 1024 * 1024
"""What the node may ever hold: its own 60 MB, and 2,000 connections with a receive buffer each."""
_PROGRESS_FRAMES: Final = 20_000
_ANSWER_SECONDS: Final = 0.3
_PATIENCE_SECONDS: Final = 20.0
_STORM_SECONDS: Final = 60.0
_BAD_LINES: Final = re.compile(r"internal error|cannot go on|exception contained|offline|Traceback", re.IGNORECASE)
STEADY: Final = TopicPartition("steady", 0)


@dataclass
class DoorReport:
    """What was sent and what came of it."""

    frames: int = 0  # hostile ones; sound requests beside them are not counted
    connections: int = 0
    seconds: float = 0.0
    memory_bytes: int = 0
    acknowledged: int = 0
    slowest_seconds: float = 0.0
    attacks: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"socket: {self.frames:,} frames on {self.connections:,} connections, {self.seconds:.0f} s, "
            f"{len(self.wrong)} crashes; node's memory at most {self.memory_bytes / 1e6:.0f} MB; beside it "
            f"{self.acknowledged:,} records acknowledged and read, the slowest in {self.slowest_seconds * 1000:.0f} ms"
        )


def fuzz_door(seconds: float, seed: int, folder: Path, *, frames: int = 0) -> DoorReport:
    """Start a node in the folder and let everybody at it, for a time and until it had so many frames."""
    _allow_many_files()
    with Node(folder, settings={"durability": "os", "log.retention.bytes": "100000000"}) as node:
        report = asyncio.run(_Siege(node, seed).run(seconds, frames))
        _judge_node(node, folder, report)
        if node.alive and node.stop() != 0:
            report.wrong.append("the node did not stop in good order")
    return report


def _allow_many_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))


def _judge_node(node: Node, folder: Path, report: DoorReport) -> None:
    if not node.alive:
        report.wrong.append("the node is gone")
        return
    status = Path(f"/proc/{node.pid}/status").read_text()
    report.memory_bytes = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024  # type: ignore[index]
    if report.memory_bytes > MEMORY_BYTES_MAX:
        report.wrong.append(f"the node held {report.memory_bytes / 1e6:.0f} MB")
    log = (folder / "node.log").read_text(errors="replace")
    report.wrong += [f"in the node's log: {line[:300]}" for line in log.splitlines() if _BAD_LINES.search(line)]


Peer = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Siege:
    def __init__(self, node: Node, seed: int) -> None:
        self._host, _, port = node.bootstrap.rpartition(":")
        self._port = int(port)
        self._node = node
        self._bootstrap = node.bootstrap
        self._random = Random(seed)
        self._frames = [frame[4:] for frame in requests(self._random)]
        self._boundaries = BoundaryRequests(self._random, {})
        self._readable: list[bytes] = []
        while len(self._readable) < READABLE:
            frame = self._mutated(self._frames)
            if _can_be_read(frame):
                self._readable.append(frame)
        self._report = DoorReport()
        self._told = 0  # frames at the last word about progress
        self._over = False

    async def run(self, seconds: float, frames: int) -> DoorReport:
        """Attack from several sides until it is over; an honest client works all the while."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            honest = tasks.create_task(self._be_honest())
            attacks = [tasks.create_task(self._attack()) for _ in range(ATTACKERS)]
            attacks.append(tasks.create_task(self._hold(self._trickle, 100)))
            attacks.append(tasks.create_task(self._hold(self._never_read, 2)))
            await asyncio.sleep(seconds / 2)
            await self._storm()
            while not self._over and (time.monotonic() - began < seconds or self._report.frames < frames):
                await asyncio.sleep(0.2)
                self._tell_progress()
                if self._report.frames // _STORM_EVERY_FRAMES >= self._report.attacks["storm"]:
                    await self._storm()
            self._over = True
            await asyncio.wait(attacks)
            await honest
        self._report.seconds = time.monotonic() - began
        return self._report

    def _tell_progress(self) -> None:
        if self._report.frames >= self._told + _PROGRESS_FRAMES:
            self._told = self._report.frames
            print(f"socket: {self._told:,} frames, {len(self._report.wrong)} crashes so far", flush=True)

    # -- the honest client

    async def _be_honest(self) -> None:
        """Write, and in the end read back."""
        report = self._report
        sent: list[bytes] = []
        try:
            async with Producer(self._bootstrap, delivery_timeout_ms=60_000) as producer:
                while not self._over:
                    began = time.monotonic()
                    value = b"%d" % len(sent)
                    await producer.send(STEADY.topic, value, partition=0)
                    sent.append(value)
                    report.slowest_seconds = max(report.slowest_seconds, time.monotonic() - began)
                    await asyncio.sleep(0.002)
            report.acknowledged = len(sent)
            if await self._read_back(len(sent)) != sent:
                report.wrong.append("the honest client does not read what it wrote")
        except KafkaError as error:
            report.wrong.append(f"the honest client was refused: {error}")
            self._over = True

    async def _read_back(self, count: int) -> list[bytes | None]:
        values: list[bytes | None] = []
        async with Consumer(self._bootstrap) as consumer:
            consumer.assign([STEADY])
            await consumer.seek_to_beginning(STEADY)
            while len(values) < count and (records := await consumer.poll(timeout_ms=5_000)):
                values += [record.value for record in records]
        return values

    # -- the others

    async def _attack(self) -> None:
        kinds: list[Callable[[Peer], Awaitable[None]]] = [
            *[self._send_mutated] * 12,
            *[self._send_boundaries] * 4,
            self._send_garbage,
            self._announce_too_much,
            self._stop_half_way,
            self._close_half,
            self._reset,
        ]
        while not self._over:
            attack = self._random.choice(kinds)
            self._report.attacks[attack.__name__] += 1
            await self._with_peer(attack)

    async def _with_peer(self, work: Callable[[Peer], Awaitable[None]]) -> None:
        try:
            peer = await asyncio.open_connection(self._host, self._port)
        except OSError:
            if not self._node.alive:
                self._over = True
            return
        self._report.connections += 1
        try:
            if self._random.random() < 0.5:
                peer[1].write(_API_VERSIONS)
            await work(peer)
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            pass  # the node hung up, as it should
        finally:
            peer[1].transport.abort()

    async def _hold(self, work: Callable[[Peer], Awaitable[None]], count: int) -> None:
        """Keep so many peers of one kind at it."""

        async def again() -> None:
            while not self._over:
                self._report.attacks[work.__name__] += 1
                await self._with_peer(work)

        await asyncio.gather(*(again() for _ in range(count)))

    async def _send_mutated(self, peer: Peer) -> None:
        """Send frames that are no longer what they were: many that can still be read, at last one that cannot."""
        burst = self._burst()
        self._report.frames += len(burst)
        peer[1].write(b"".join(len(frame).to_bytes(4) + frame for frame in burst))
        await self._wait_for_end(peer)

    async def _send_boundaries(self, peer: Peer) -> None:
        """Send whole requests with values at the edge of what fields hold; names of topics are made as they come."""
        for _ in range(BOUNDARY_FRAMES):
            api = self._random.choice(APIS)
            version = self._random.choice(list(api.versions))
            try:
                frame = encode_request(api, version, 1, "fuzz", self._boundaries.request_of(api, version))
            except (MalformedMessage, ValueError, OverflowError):
                continue  # no client could write this
            if len(frame) <= BOUNDARY_BYTES_MAX:
                self._report.frames += 1
                peer[1].write(frame)
        await self._wait_for_end(peer)

    def _burst(self) -> list[bytes]:
        """Choose frames that can be read, and mutate some anew, until one cannot: it ends the connection."""
        burst = self._random.choices(self._readable, k=BURST_FRAMES)
        for _ in range(FRESH_FRAMES):
            frame = self._mutated(self._frames if self._random.random() < 0.5 else burst)
            burst.append(frame)
            if not _can_be_read(frame):
                break
            self._readable[self._random.randrange(READABLE)] = frame
        return burst

    def _mutated(self, frames: list[bytes]) -> bytes:
        return mutate(self._random.choice(frames), self._random, self._random.choice(frames))[:FRAME_BYTES_MAX]

    async def _send_garbage(self, peer: Peer) -> None:
        self._report.frames += 1
        peer[1].write(self._random.randbytes(self._random.randrange(1, 3_000)))
        await self._wait_for_end(peer)

    async def _announce_too_much(self, peer: Peer) -> None:
        """Announce frames of up to 100 MiB and send little of them."""
        length = self._random.choice((-1, 0, 1 << 20, 100 << 20, (100 << 20) + 1, 0x7FFF_FFFF))
        self._report.frames += 1
        peer[1].write(length.to_bytes(4, signed=True) + bytes(self._random.randrange(200_000)))
        await self._wait_for_end(peer)

    async def _stop_half_way(self, peer: Peer) -> None:
        frame = self._random.choice(self._frames)
        self._report.frames += 1
        peer[1].write(len(frame).to_bytes(4) + frame[: self._random.randrange(len(frame))])
        await peer[1].drain()

    async def _close_half(self, peer: Peer) -> None:
        """Ask and close one's own half at once; the answer may still come."""
        peer[1].write(_API_VERSIONS)
        peer[1].write_eof()
        async with asyncio.timeout(_PATIENCE_SECONDS):
            answers = await peer[0].read()
        if answers[4:8] != _API_VERSIONS[8:12]:
            self._report.wrong.append(f"a peer that closed its half got {answers[:20]!r} for an answer")

    async def _reset(self, peer: Peer) -> None:
        """Ask and go away without a word, answers unread."""
        peer[1].write(_API_VERSIONS * 3)
        await peer[1].drain()
        peer[1].transport.abort()

    async def _trickle(self, peer: Peer) -> None:
        """Send a frame a byte at a time."""
        self._report.frames += 1
        frame = self._random.choice(self._frames)
        for byte in len(frame).to_bytes(4) + frame[:40]:
            if self._over:
                return
            peer[1].write(bytes([byte]))
            await peer[1].drain()
            await asyncio.sleep(0.1)

    async def _never_read(self, peer: Peer) -> None:
        """Ask twenty thousand times and take no answer; from some moment on the node reads no more."""
        peer[0]._transport.pause_reading()  # type: ignore[attr-defined]
        for _ in range(200):
            peer[1].write(_API_VERSIONS * 100)
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await peer[1].drain()
        await asyncio.sleep(10 * self._random.random())

    async def _storm(self) -> None:
        """Connect two thousand times at once, ask once on each connection, and stay for a moment."""
        self._report.attacks["storm"] += 1
        peers = await asyncio.gather(
            *(asyncio.open_connection(self._host, self._port) for _ in range(STORM)), return_exceptions=True
        )
        there = [peer for peer in peers if not isinstance(peer, BaseException)]
        self._report.connections += len(there)
        for _, writer in there:
            writer.write(_API_VERSIONS)
        answered = 0
        deadline = asyncio.get_running_loop().time() + _STORM_SECONDS
        for reader, _ in there:
            with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
                async with asyncio.timeout_at(deadline):
                    answered += len(await reader.readexactly(4)) == 4
        if answered < STORM:
            self._report.wrong.append(f"of {STORM} connections at once {len(there)} were let in, {answered} answered")
        for _, writer in there:
            writer.transport.abort()

    async def _wait_for_end(self, peer: Peer) -> None:
        await peer[1].drain()
        async with asyncio.timeout(_ANSWER_SECONDS):
            while await peer[0].read(1 << 16):
                pass


def _can_be_read(frame: bytes) -> bool:
    return outcome("request", frame) == "a request"


_API_VERSIONS: Final = bytes.fromhex("0000000a 0012 0000 0000002a ffff".replace(" ", ""))
