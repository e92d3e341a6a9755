"""One client process of `riverlog bench`: it is sent its share of the load and prints the outcome.

Requests come on standard input, answers go to standard output, each a line of JSON:

    <- {"part": "produce", "topic": ...}      what to do
    -> {"ready": true}                        connected, and everything that is set up lazily is
    <- "go"                                   the clock starts
    -> {"records": 1000, "bytes": 100000}     how far it has come, a few times a second
    -> {"records": 5000, ..., "seconds": ...} the outcome; or {"trouble": "a sentence", "exit_code": 4}

Every client has a process of its own, because one interpreter is one core. It ends when its standard input does.
"""

import asyncio
import itertools
import json
import struct
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from dataclasses import asdict, dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Final

from riverlog.cli.client_settings import created
from riverlog.cli.cluster_options import run
from riverlog.cli.load.latencies import Latencies
from riverlog.cli.refusals import client_errors
from riverlog.cli.terminal.exits import CommandError, ExitCode
from riverlog.model.ids import TopicPartition

if TYPE_CHECKING:
    from riverlog.client.consumer.consumer import Consumer
    from riverlog.client.producer.producer import Producer

BURST_RECORDS_MAX: Final = 100
BURST_BYTES_MAX: Final = 64 * 1024
VALUES_DISTINCT_MAX: Final = 1_000
VALUES_BYTES_MAX: Final = 8 * 1024 * 1024
TIMER_GRAIN_SECONDS: Final = 0.002
"""The event loop wakes up to a millisecond late, and that is no latency of the broker."""
ROUNDING: Final = 1e-6
"""Of a record: one that is due is not put off because a product of fractions fell short of a whole number."""
PROGRESS_SECONDS: Final = 0.2
POLL_MS: Final = 200
POLL_RECORDS_MAX: Final = 5_000
ARRIVAL_POLL_MS: Final = 20
ARRIVAL_SECONDS_MAX: Final = 10
"""How long the last records of the end-to-end part are waited for."""
CLOCK: Final = struct.Struct(">q")

now = time.monotonic


Range = tuple[int, int, int]
"""A partition, the first offset to be read, and the offset behind the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLoad:
    """What one client process does. It stops after `records` or after `seconds`, whichever is given and comes first."""

    part: str
    bootstrap: str
    topic: str
    record_bytes: int = 100
    records: int | None = None
    seconds: float | None = None
    rate: float | None = None
    producer: dict[str, Any] = field(default_factory=dict)
    consumer: dict[str, Any] = field(default_factory=dict)
    ranges: list[Range] = field(default_factory=list)
    """What is read."""


@dataclass(slots=True)
class LoadCounter:
    """What has been acknowledged or received so far, and when each record was."""

    records: int = 0
    bytes: int = 0
    latencies: Latencies = field(default_factory=Latencies)
    refused: bool = False

    def count(self, size: int, latency_seconds: float) -> None:
        self.records += 1
        self.bytes += size
        self.latencies.add(round(latency_seconds * 1e6))


@dataclass(frozen=True, slots=True)
class ClientOutcome:
    """What one client process did, as it is told to the one that started it."""

    records: int
    bytes: int
    seconds: float
    cpu_seconds: float
    latency_counts: list[tuple[int, int]]
    latency_largest: int

    @property
    def latencies(self) -> Latencies:
        return Latencies(dict(self.latency_counts), self.latency_largest)


Gate = Callable[[], Awaitable[None]]
"""Reports that this process is ready, and returns when all others are, too."""


async def produce(share: ClientLoad, counter: LoadCounter, gate: Gate) -> None:
    """Send records and time each until its acknowledgement."""
    from riverlog import Producer

    async with created(Producer, share.bootstrap, share.producer) as producer:
        values = sample_values(share.record_bytes)
        await producer.send(share.topic, next(values))  # sets up connection, metadata and producer id
        await gate()
        await _send(producer, share, counter, values)
        await producer.flush()


async def consume(share: ClientLoad, counter: LoadCounter, gate: Gate) -> None:
    """Read ranges of offsets from their beginning."""
    from riverlog import Consumer

    async with created(Consumer, share.bootstrap, share.consumer) as consumer:
        await consumer.partitions(share.topic)
        await gate()
        await _assign(consumer, share)
        ends = {TopicPartition(share.topic, partition): end for partition, _, end in share.ranges}
        deadline = None if share.seconds is None else now() + share.seconds
        unread = set(ends)
        while unread and (deadline is None or now() < deadline):
            for record in await consumer.poll(POLL_MS, POLL_RECORDS_MAX):
                if record.offset < ends[TopicPartition(share.topic, record.partition)]:
                    counter.records += 1
                    counter.bytes += len(record.value or b"") + len(record.key or b"")
            # By position, not by the last record seen: the end may be a marker that is never given out.
            unread = {each for each in unread if await consumer.position(each) < ends[each]}


async def end_to_end(share: ClientLoad, counter: LoadCounter, gate: Gate) -> None:
    """Send records at a steady rate and read them beside it; time each from the one to the other."""
    from riverlog import Consumer, Producer

    async with (
        created(Producer, share.bootstrap, share.producer) as producer,
        created(Consumer, share.bootstrap, share.consumer) as consumer,
    ):
        padding = bytes(share.record_bytes - CLOCK.size)
        await _assign(consumer, share)
        await producer.send(share.topic, CLOCK.pack(0) + padding)
        await gate()
        began_ns = time.monotonic_ns()

        sent, all_sent = LoadCounter(), False

        async def receive() -> None:
            while not all_sent or counter.records < sent.records:
                records = await consumer.poll(ARRIVAL_POLL_MS, POLL_RECORDS_MAX)
                arrived_ns = time.monotonic_ns()
                for record in records:
                    value = record.value or b""
                    sent_ns = CLOCK.unpack_from(value)[0] if len(value) == share.record_bytes else 0
                    if began_ns <= sent_ns <= arrived_ns:  # others may write to the same topic
                        counter.count(len(value), (arrived_ns - sent_ns) / 1e9)

        receiving = asyncio.create_task(receive())
        try:
            await _send(producer, share, sent, (CLOCK.pack(time.monotonic_ns()) + padding for _ in itertools.count()))
            await producer.flush()
            all_sent = True
            await asyncio.wait_for(receiving, ARRIVAL_SECONDS_MAX)
        except TimeoutError:
            missing = f"{sent.records - counter.records} of {sent.records} records"
            raise CommandError(f"{missing} did not reach the consumer within {ARRIVAL_SECONDS_MAX} s") from None
        finally:
            receiving.cancel()


PARTS: Final[dict[str, Callable[[ClientLoad, LoadCounter, Gate], Coroutine[Any, Any, None]]]] = {
    "produce": produce,
    "consume": consume,
    "end-to-end": end_to_end,
}


async def bursts(share: ClientLoad, now: Callable[[], float] = time.monotonic) -> AsyncIterator[list[float]]:
    """Yield the moments from which some records count, as soon as they may be sent.

    At a given rate, a record counts from when it was due if the client came to it late: a broker that holds up its
    client must not look good because fewer records were sent meanwhile.
    """
    burst_max = max(1, min(BURST_RECORDS_MAX, BURST_BYTES_MAX // share.record_bytes))
    began, sent = now(), 0
    while sent != share.records:
        moment = now()
        elapsed = moment - began
        if share.seconds is not None and elapsed >= share.seconds:
            return
        count = burst_max if share.records is None else min(burst_max, share.records - sent)
        if share.rate is None:
            yield [moment] * count
        else:
            count = min(count, int(elapsed * share.rate + ROUNDING) + 1 - sent)
            if count <= 0:
                await asyncio.sleep(began + sent / share.rate - moment)
                continue
            due = [began + (sent + number) / share.rate for number in range(count)]
            yield [each if moment - each > TIMER_GRAIN_SECONDS else moment for each in due]
        sent += count


def sample_values(size: int) -> Iterator[bytes]:
    """Yield values of `size` bytes over and over, half of each random, so that compression has work to do."""
    random = Random(size)
    count = max(1, min(VALUES_DISTINCT_MAX, VALUES_BYTES_MAX // size))
    return itertools.cycle([random.randbytes(size // 2).hex().encode().ljust(size, b"-") for _ in range(count)])


async def _send(producer: "Producer", share: ClientLoad, counter: LoadCounter, values: Iterator[bytes]) -> None:
    """Send as `bursts` says. Records of a batch are acknowledged together, so one callback serves them all."""
    waiting: dict[asyncio.Future[Any], list[float]] = {}

    def acknowledged(future: "asyncio.Future[Any]") -> None:
        moment = now()
        if future.cancelled() or future.exception() is not None:
            counter.refused = True  # what was refused and why is raised by the producer's flush
            return
        for since in waiting.pop(future):
            counter.count(share.record_bytes, moment - since)

    async for moments in bursts(share):
        await producer.ready(len(moments) * share.record_bytes)
        if counter.refused:
            return
        for moment in moments:
            delivery = producer.send_soon(share.topic, next(values))
            future = delivery.batch_future
            if future is None:  # the topic has vanished: the delivery says so, or it came back
                await delivery
                counter.count(share.record_bytes, now() - moment)
            elif future in waiting:
                waiting[future].append(moment)
            else:
                waiting[future] = [moment]
                future.add_done_callback(acknowledged)


async def _assign(consumer: "Consumer", share: ClientLoad) -> None:
    consumer.assign(TopicPartition(share.topic, partition) for partition, _, _ in share.ranges)
    for partition, first, _ in share.ranges:
        await consumer.seek(TopicPartition(share.topic, partition), first)


async def _work(share: ClientLoad) -> ClientOutcome:
    """Do the share between the signal to go and its end, saying every so often how far it has come."""
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    counter = LoadCounter()
    began = cpu_began = 0.0
    beside: list[asyncio.Task[None]] = []
    working = asyncio.current_task()
    assert working is not None

    async def gate() -> None:
        nonlocal began, cpu_began
        _say({"ready": True})
        if not await commands.readline():
            raise asyncio.CancelledError
        beside.extend([asyncio.create_task(end_with_input()), asyncio.create_task(report())])
        began, cpu_began = now(), time.process_time()

    async def end_with_input() -> None:
        await commands.read()
        working.cancel()

    async def report() -> None:
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            _say({"records": counter.records, "bytes": counter.bytes})

    try:
        await PARTS[share.part](share, counter, gate)
    finally:
        for each in beside:
            each.cancel()
    return ClientOutcome(
        records=counter.records,
        bytes=counter.bytes,
        seconds=now() - began,
        cpu_seconds=time.process_time() - cpu_began,
        latency_counts=sorted(counter.latencies.counts.items()),
        latency_largest=counter.latencies.largest,
    )


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def with_security(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a client as they were before they became JSON."""
    from riverlog.client.network.security import Login, Security, Tls

    given = arguments.get("security")
    if given is None:
        return arguments
    security = Security(
        tls=None if given["tls"] is None else Tls(**given["tls"]),
        login=None if given["login"] is None else Login(**given["login"]),
    )
    return {**arguments, "security": security}


def main() -> int:
    """Read the load, run it, and print the outcome."""
    import uvloop

    given = json.loads(sys.stdin.readline())
    share = ClientLoad(**given | {role: with_security(given[role]) for role in ("producer", "consumer")})
    try:
        with client_errors():
            _say(asdict(run(_work(share), runner=uvloop.run)))
    except CommandError as trouble:
        _say({"trouble": str(trouble), "exit_code": trouble.exit_code})
    except (asyncio.CancelledError, BrokenPipeError, KeyboardInterrupt):
        return ExitCode.INTERRUPTED  # whoever wanted to know is gone
    return ExitCode.DONE


if __name__ == "__main__":
    sys.exit(main())
