"""What is done through confluent-kafka, the client that most Python users have.

Its settings are librdkafka's defaults unless a line says otherwise. `produce` ends with a look at the log: what was
acknowledged must be there, or the run has failed.
"""

import contextlib
import gc
import itertools
import struct
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import confluent_kafka
from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # exported, undeclared
from confluent_kafka.cimpl import NewTopic

from bench.trial import Failed, Node, Stopwatch

REQUEST_SECONDS_MAX: Final = 60
VALUES_DISTINCT: Final = 1_000
DELETION_SECONDS_MAX: Final = 3
"""How long a deleted topic's files are waited for; what is still there then goes away during the next run."""
DELETION_POLL_SECONDS: Final = 0.02
QUEUE_FULL_PAUSE_SECONDS: Final = 0.001
FETCH_AT_ONCE_MAX: Final = 10_000

Settings = Mapping[str, str | int | float | bool]


VERSION: Final = f"confluent-kafka {confluent_kafka.__version__}"


@dataclass(frozen=True, slots=True)
class Moved:
    """Records that went through the broker, the time it took and what the broker spent on them."""

    records: int
    bytes: int
    seconds: float
    broker_cpu_seconds: float


@contextlib.contextmanager
def fresh_topic(
    node: Node, settings: Mapping[str, str] | None = None, *, partitions: int = 1, name: str | None = None
) -> Iterator[str]:
    """Create a topic that has never been used; delete it in the end, and its files with it."""
    admin = AdminClient(_common(node))
    topic = create_topic(node, partitions, settings, name=name)
    try:
        yield topic
    finally:
        deleted = admin.delete_topics([topic])
        _result(deleted[topic].result, "a topic cannot be deleted")
        deadline = time.monotonic() + DELETION_SECONDS_MAX
        while any(node.data.glob(f"{topic}-*")) and time.monotonic() < deadline:
            time.sleep(DELETION_POLL_SECONDS)


def create_topic(
    node: Node, partitions: int, settings: Mapping[str, str] | None = None, *, name: str | None = None
) -> str:
    """Create a topic and give its name, which is a new one unless somebody chose it."""
    topic = name or f"bench-{uuid.uuid4().hex[:12]}"
    admin = AdminClient(_common(node))
    created = admin.create_topics([NewTopic(topic, partitions, 1, config=dict(settings or {}))])
    _result(created[topic].result, "a topic cannot be created")
    end_offset(node, topic, partitions)  # answered once each partition is led: what is sent before is refused
    return topic


def fill(node: Node, topic: str, values: Iterable[str], *, partitions: int) -> None:
    """Write values to the partitions in turn, so that all of them are equally far at any time."""
    producer = Producer({**_common(node), "linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    for number, value in enumerate(values):
        while True:
            try:
                producer.produce(topic, value, partition=number % partitions)
                break
            except BufferError:
                producer.poll(QUEUE_FULL_PAUSE_SECONDS)
    if left := producer.flush(REQUEST_SECONDS_MAX):
        raise Failed(f"{left} records were not acknowledged within {REQUEST_SECONDS_MAX} s")


def produce_into_each(node: Node, topic: str, *, partitions: int, value_bytes: int) -> None:
    """Send one record to every partition and wait for the acknowledgements."""
    refused: list[KafkaError] = []
    producer = Producer(
        {
            **_common(node),
            "message.timeout.ms": REQUEST_SECONDS_MAX * 1000,
            "delivery.report.only.error": True,
            "on_delivery": lambda error, _: refused.append(error),
        }
    )
    for partition in range(partitions):
        producer.produce(topic, bytes(value_bytes), partition=partition)
    if (unanswered := producer.flush(REQUEST_SECONDS_MAX)) or refused:
        raise Failed(f"{unanswered} records were not answered; refused: {refused[:1] or 'none'}")


def produce(
    node: Node, topic: str, *, value_bytes: int, seconds: float, settings: Settings | None = None, partitions: int = 1
) -> Moved:
    """Send values to all partitions in turn as fast as the client can, then wait for every acknowledgement."""
    end_before = end_offset(node, topic, partitions)
    turns = itertools.cycle(range(partitions))
    values = values_of(value_bytes)
    refused: list[KafkaError] = []
    producer = Producer(
        {
            **_common(node),
            "message.timeout.ms": REQUEST_SECONDS_MAX * 1000,
            "delivery.report.only.error": True,
            "on_delivery": lambda error, _: refused.append(error),
            **(settings or {}),
        }
    )
    records = 0
    stopwatch = Stopwatch(node)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not refused:
        send_all(producer, topic, values, turns)
        records += len(values)
        producer.poll(0)
    unanswered = producer.flush(REQUEST_SECONDS_MAX)
    stopwatch.stop()
    if unanswered or refused:
        raise Failed(f"{unanswered} records were not answered; refused: {refused[:1] or 'none'}")
    if (written := end_offset(node, topic, partitions) - end_before) != records:
        raise Failed(f"{records} records were acknowledged, but the log grew by {written}")
    return Moved(records, records * value_bytes, stopwatch.seconds, stopwatch.cpu_seconds)


def send_all(producer: Producer, topic: str, values: Iterable[bytes], turns: Iterator[int]) -> None:
    """Pass the values to the client, each for the partition whose turn it is, as fast as it takes them."""
    for value, partition in zip(values, turns, strict=False):
        while True:
            try:
                producer.produce(topic, value, partition=partition)
                break
            except BufferError:  # 100,000 messages wait: the client's own bound
                producer.poll(QUEUE_FULL_PAUSE_SECONDS)


def produce_singly(node: Node, topic: str, *, value_bytes: int, seconds: float) -> Moved:
    """Send one value at a time: the next only when the last is acknowledged."""
    producer = Producer({**_common(node), "linger.ms": 0})
    value = Random(1).randbytes(value_bytes)
    _send_and_wait(producer, topic, value)
    records = 0
    stopwatch = Stopwatch(node)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        _send_and_wait(producer, topic, value)
        records += 1
    stopwatch.stop()
    return Moved(records, records * value_bytes, stopwatch.seconds, stopwatch.cpu_seconds)


def consume(node: Node, topic: str, *, value_bytes: int, as_member: bool = False) -> Moved:
    """Read the whole topic from its beginning, by assignment or as the member of a new group that commits every five
    seconds; the clock starts with the first records."""
    end = end_offset(node, topic)
    consumer = _member(node, topic) if as_member else _consumer(node, topic)
    try:
        messages = consumer.consume(FETCH_AT_ONCE_MAX, timeout=REQUEST_SECONDS_MAX)
        at_first = received = len(messages)
        stopwatch = Stopwatch(node)
        while messages and received < end:
            # Asked for more than there are, the client would wait for the rest.
            messages = consumer.consume(min(FETCH_AT_ONCE_MAX, end - received), timeout=REQUEST_SECONDS_MAX)
            received += len(messages)
        stopwatch.stop()
    finally:
        consumer.close()
    if not messages:
        raise Failed(f"no record came within {REQUEST_SECONDS_MAX} s; {received} of {end} had come before")
    last = messages[-1]
    if last.error() or last.offset() != end - 1:
        raise Failed(f"the last of {end} records came with offset {last.offset()}, error {last.error()}")
    records = received - at_first
    return Moved(records, records * value_bytes, stopwatch.seconds, stopwatch.cpu_seconds)


def produce_latencies(node: Node, topic: str, *, rate: int, value_bytes: int, seconds: float) -> list[float]:
    """Send at a steady rate without lingering; give each record's milliseconds until its acknowledgement."""
    latencies: list[float] = []
    refused: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            refused.append(error)
        latencies.append((message.latency() or 0.0) * 1000)

    producer = Producer({**_common(node), "linger.ms": 0})
    value = Random(1).randbytes(value_bytes)
    _send_and_wait(producer, topic, value)
    with _served(producer):
        for _ in _ticks(rate, seconds):
            producer.produce(topic, value, partition=0, on_delivery=delivered)
    if unanswered := producer.flush(REQUEST_SECONDS_MAX):
        raise Failed(f"{unanswered} records were not answered")
    if refused:
        raise Failed(f"{len(refused)} records were refused: {refused[0]}")
    return latencies


@contextlib.contextmanager
def _served(producer: Producer) -> Iterator[None]:
    """Take acknowledgements as they come: a client that looks only when it sends would time its own pauses."""
    done = threading.Event()

    def serve() -> None:
        while not done.is_set():
            producer.poll(0.1)

    server = threading.Thread(target=serve)
    server.start()
    try:
        yield
    finally:
        done.set()
        server.join()


def end_to_end_latencies(
    node: Node, topic: str, *, rate: int, value_bytes: int, seconds: float, copy: str | None = None
) -> list[float]:
    """Send at a steady rate and read beside it; give each record's milliseconds from producer to consumer.

    Where somebody copies the topic, what is read is the copy.
    """
    clock = struct.Struct(">q")
    padding = bytes(value_bytes - clock.size)
    expected = round(rate * seconds) + 1
    latencies: list[float] = []
    first_arrived = threading.Event()

    def read() -> None:
        deadline = time.monotonic() + seconds + REQUEST_SECONDS_MAX
        while len(latencies) < expected and time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                (sent_ns,) = clock.unpack_from(message.value() or b"")
                latencies.append((time.monotonic_ns() - sent_ns) / 1e6)
                first_arrived.set()

    def stamped() -> bytes:
        return clock.pack(time.monotonic_ns()) + padding

    producer = Producer({**_common(node), "linger.ms": 0})
    consumer = _consumer(node, copy or topic)
    reader = threading.Thread(target=read)
    reader.start()
    try:
        _send_and_wait(producer, topic, stamped())
        if not first_arrived.wait(REQUEST_SECONDS_MAX):
            raise Failed(f"the first record did not reach the consumer within {REQUEST_SECONDS_MAX} s")
        for _ in _ticks(rate, seconds):
            producer.produce(topic, stamped(), partition=0)
            producer.poll(0)
        producer.flush(REQUEST_SECONDS_MAX)
    finally:
        reader.join()
        consumer.close()
    if len(latencies) != expected:
        raise Failed(f"{len(latencies)} of {expected} records reached the consumer")
    return latencies[1:]


def end_offset(node: Node, topic: str, partitions: int = 1, *, committed: bool = False) -> int:
    """Ask where the topic's partitions end, for readers of committed records or for all, and add it up."""
    isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the client's own lack
    wanted = {TopicPartition(topic, partition): latest for partition in range(partitions)}
    admin = AdminClient(_common(node))  # kept by name: without an owner its answers never come
    found = admin.list_offsets(wanted, isolation_level=isolation, request_timeout=REQUEST_SECONDS_MAX)
    return sum(_result(each.result, f"the end of {topic} cannot be read").offset for each in found.values())


def _common(node: Node) -> dict[str, Any]:
    return {"bootstrap.servers": f"{node.host}:{node.port}", "log_level": 2}


def _consumer(node: Node, topic: str) -> Consumer:
    consumer = Consumer(
        {
            **_common(node),
            "group.id": "bench",
            "enable.auto.commit": False,
            # The default is a second: whenever the client's queue is full it sleeps, and that would be measured.
            "fetch.queue.backoff.ms": 5,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    return consumer


def _member(node: Node, topic: str) -> Consumer:
    consumer = Consumer(
        {
            **_common(node),
            "group.id": f"bench-{uuid.uuid4().hex[:12]}",
            "auto.offset.reset": "earliest",
            "fetch.queue.backoff.ms": 5,
        }
    )
    consumer.subscribe([topic])
    return consumer


def _send_and_wait(producer: Producer, topic: str, value: bytes) -> None:
    """Send one record and wait for it; the first goes through all that is set up lazily, as the producer id is."""
    producer.produce(topic, value, partition=0)
    if producer.flush(REQUEST_SECONDS_MAX):
        raise Failed(f"a record was not answered within {REQUEST_SECONDS_MAX} s")


def _ticks(rate: int, seconds: float) -> Iterator[int]:
    """Yield numbers at a steady rate; one that comes late is not made up for by moving the others."""
    gc.collect()
    gc.disable()  # a collection in the middle would be measured as the broker's
    try:
        begin = time.monotonic()
        for number in range(round(rate * seconds)):
            wait = begin + number / rate - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            yield number
    finally:
        gc.enable()


def values_of(size: int) -> list[bytes]:
    """Make JSON texts of exactly `size` bytes, half of them random digits, so that compression has work to do."""
    random = Random(size)
    texts = []
    for number in range(VALUES_DISTINCT):
        text = f'{{"order":{number},"customer":"{random.getrandbits(64):016x}","note":"'
        noise = f"{random.getrandbits(4 * size):0{size}x}"
        texts.append((text + noise[: size - len(text) - 2] + '"}').encode())
    assert all(len(text) == size for text in texts)
    return texts


def _result(wait: Any, problem: str) -> Any:
    try:
        return wait(timeout=REQUEST_SECONDS_MAX)
    except TimeoutError:
        raise Failed(f"{problem}: no answer within {REQUEST_SECONDS_MAX} s") from None
    except KafkaException as error:
        raise Failed(f"{problem}: {error}") from error
