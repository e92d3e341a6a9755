"""What transactions cost through confluent-kafka: beside plain idempotent writes, one by one, and to begin with.

A run ends with a look at the log: readers of committed records must get to its end, and it must hold what was committed
and a marker for each transaction and partition, or the run has failed.
"""

import itertools
import time
import uuid
from collections.abc import Callable, Mapping
from statistics import median, quantiles
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaException, Producer

from bench import clients
from bench.clients import REQUEST_SECONDS_MAX, Moved, fresh_topic
from bench.probes import GIGABYTE, MEGABYTE
from bench.trial import Failed, Node, Stopwatch, Trial, Values

IDEMPOTENT: Final[clients.Settings] = {"enable.idempotence": True}
TRANSACTION_SECONDS: Final = 0.1
VALUE_BYTES: Final = 1_000
SMALL_VALUE: Final = bytes(100)
FIRST_TRANSACTIONS: Final = 20
INITIALIZATIONS: Final = 5
MARKERS_POLL_SECONDS: Final = 0.01

Result = TypeVar("Result")


def large(trial: Trial, *, partitions: int = 1, durable: bool = False) -> Values:
    """Send 1 KB records as fast as it goes in transactions of 100 ms; by an idempotent producer before and after, half
    the time each, for a machine may get faster or slower meanwhile."""
    settings = trial.contender.durable_topic if durable else {}
    before = _plain(trial, settings, partitions=partitions)
    with fresh_topic(trial.node, settings, partitions=partitions) as topic:
        moved = _produce(trial.node, topic, partitions=partitions, seconds=trial.seconds)
    after = _plain(trial, settings, partitions=partitions)
    rate = moved.bytes / MEGABYTE / moved.seconds
    plain = (before.bytes + after.bytes) / MEGABYTE / (before.seconds + after.seconds)
    return {
        "rate": rate,
        "plain": plain,
        "share": rate / plain,
        "CPU": moved.broker_cpu_seconds / (moved.bytes / GIGABYTE),
    }


def small(trial: Trial) -> Values:
    """Commit one transaction of one record after the other, and time the commits."""
    commits_ms: list[float] = []
    with fresh_topic(trial.node) as topic:
        producer = _initialized(trial.node, _new_id())
        for _ in range(FIRST_TRANSACTIONS):
            commit_one(producer, topic)
        stopwatch = Stopwatch(trial.node)
        deadline = time.monotonic() + trial.seconds
        while time.monotonic() < deadline:
            commits_ms.append(commit_one(producer, topic) * 1e3)
        stopwatch.stop()
        committed = FIRST_TRANSACTIONS + len(commits_ms)
        expect_readable(lambda: _stable_end(trial.node, topic), records=committed, markers=committed)
    return timings(commits_ms, stopwatch, "commit ")


def initialization(trial: Trial) -> Values:
    """Time `init_transactions` of connected clients: with ids that are new, and with ids that have committed."""
    new_ms, known_ms = [], []
    with fresh_topic(trial.node) as topic:
        for _ in range(INITIALIZATIONS):
            named = {"transactional.id": _new_id()}
            producer, another = _connected(trial.node, named), _connected(trial.node, named)
            new_ms.append(_initialize(producer) * 1e3)
            commit_one(producer, topic)
            known_ms.append(_initialize(another) * 1e3)
    return {"new": median(new_ms), "known": median(known_ms)}


def commit_one(producer: Producer, topic: str) -> float:
    """Write one record in a transaction of its own; give the seconds that `commit_transaction` took."""
    _asked(producer.begin_transaction)
    producer.produce(topic, SMALL_VALUE, partition=0)
    _, seconds = _timed(lambda: _asked(producer.commit_transaction, REQUEST_SECONDS_MAX))
    return seconds


def send_plainly(producer: Producer, topic: str, *, partitions: int, seconds: float) -> int:
    """Send as fast as it goes, and wait until all is acknowledged; give how many records were."""
    values, turns, records = clients.values_of(VALUE_BYTES), itertools.cycle(range(partitions)), 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        clients.send_all(producer, topic, values, turns)
        records += len(values)
    if unanswered := producer.flush(REQUEST_SECONDS_MAX):
        raise Failed(f"{unanswered} records were not answered")
    return records


def commit_many(producer: Producer, topic: str, *, partitions: int, seconds: float) -> tuple[int, int]:
    """Fill one transaction after the other for 100 ms each; give how many records and transactions were committed."""
    values = clients.values_of(VALUE_BYTES)
    turns = itertools.cycle(range(partitions))
    records = transactions = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        _asked(producer.begin_transaction)
        commit_at = time.monotonic() + TRANSACTION_SECONDS
        while True:
            clients.send_all(producer, topic, values, turns)
            records += len(values)
            if time.monotonic() >= commit_at:
                break
        _asked(producer.commit_transaction, REQUEST_SECONDS_MAX)
        transactions += 1
    return records, transactions


def timings(taken_ms: list[float], stopwatch: Stopwatch, what: str = "") -> Values:
    """Sum up transactions that came one after the other."""
    hundredths = quantiles(taken_ms, n=100)
    return {
        "rate": len(taken_ms) / stopwatch.seconds,
        f"{what}p50": hundredths[49],
        f"{what}p99": hundredths[98],
        "CPU": stopwatch.cpu_seconds * 1e6 / len(taken_ms),
    }


def expect_readable(stable_end: Callable[[], int], *, records: int, markers: int) -> None:
    """Wait until readers of committed records get to the end: markers may be written after a commit is answered."""
    deadline = time.monotonic() + REQUEST_SECONDS_MAX
    while (found := stable_end()) < records + markers and time.monotonic() < deadline:
        time.sleep(MARKERS_POLL_SECONDS)
    if found != records + markers:
        raise Failed(f"{records} records and {markers} markers were committed, but readers get to {found}")


def _plain(trial: Trial, settings: Mapping[str, str], *, partitions: int) -> Moved:
    """Send the same without transactions, by a client that is connected, as one with a transactional id has to be."""
    node = trial.node
    with fresh_topic(node, settings, partitions=partitions) as topic:
        clients.produce_into_each(node, topic, partitions=partitions, value_bytes=VALUE_BYTES)
        producer = _connected(node, IDEMPOTENT)
        stopwatch = Stopwatch(node)
        records = send_plainly(producer, topic, partitions=partitions, seconds=trial.seconds / 2)
        stopwatch.stop()
        expect_readable(lambda: _stable_end(node, topic, partitions), records=partitions + records, markers=0)
    return Moved(records, records * VALUE_BYTES, stopwatch.seconds, stopwatch.cpu_seconds)


def _produce(node: Node, topic: str, *, partitions: int, seconds: float) -> Moved:
    clients.produce_into_each(node, topic, partitions=partitions, value_bytes=VALUE_BYTES)
    producer = _initialized(node, _new_id())
    stopwatch = Stopwatch(node)
    records, transactions = commit_many(producer, topic, partitions=partitions, seconds=seconds)
    stopwatch.stop()
    expect_readable(
        lambda: _stable_end(node, topic, partitions), records=partitions + records, markers=transactions * partitions
    )
    return Moved(records, records * VALUE_BYTES, stopwatch.seconds, stopwatch.cpu_seconds)


def _stable_end(node: Node, topic: str, partitions: int = 1) -> int:
    return clients.end_offset(node, topic, partitions, committed=True)


def _initialized(node: Node, transactional_id: str) -> Producer:
    producer = _connected(node, {"transactional.id": transactional_id})
    _initialize(producer)
    return producer


def _connected(node: Node, settings: clients.Settings) -> Producer:
    """Make a client that is connected to the node; between its first connections it may wait, for 50 or 500 ms."""
    producer = Producer(
        {
            "bootstrap.servers": f"{node.host}:{node.port}",
            "log_level": 2,
            "delivery.report.only.error": True,
            **settings,
        }
    )
    for _ in range(2):  # the first answer comes over a connection that is given up for one to the node by its id
        _asked(producer.list_topics, None, REQUEST_SECONDS_MAX)
    return producer


def _initialize(producer: Producer) -> float:
    _, seconds = _timed(lambda: _asked(producer.init_transactions, REQUEST_SECONDS_MAX))
    return seconds


def _new_id() -> str:
    return f"bench-{uuid.uuid4().hex[:12]}"


def _asked(call: Callable[..., Any], *arguments: float | None) -> None:
    try:
        call(*arguments)
    except KafkaException as error:
        raise Failed(f"{call.__name__}: {error}") from error


def _timed(act: Callable[[], Result]) -> tuple[Result, float]:
    begin = time.monotonic()
    result = act()
    return result, time.monotonic() - begin
