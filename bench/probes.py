"""The measurements: each takes a trial and gives a value for every row of its line.

Rates are per second of wall time. Beside each stands what the broker's process spent, which is steadier on a shared
machine and says more where the client is the limit.
"""

import time
from collections.abc import Mapping
from statistics import quantiles
from typing import Final

from bench import clients, loadgen, machine, nodes
from bench.clients import Moved, Settings, fresh_topic
from bench.frames import produce_load
from bench.trial import Stopwatch, Trial, Values, cpu_seconds

MEGABYTE: Final = 1e6
GIGABYTE: Final = 1e9
SETTLE_SECONDS: Final = 2
LATENCY_SECONDS_MIN: Final = 3
"""Below this, a 99th percentile rests on a handful of records."""
CONSUMED_BYTES_PER_SECOND: Final = {100: 150_000_000, 1_000: 900_000_000}
CONSUMED_BYTES_MAX: Final = 2_000_000_000
"""What a consume line reads at most: it must lie in the page cache."""
BATCH_BYTES: Final = 900_000
"""A batch as librdkafka fills it under load, below its limit of 1,000,000."""


def startup(trial: Trial) -> Values:
    """Start a node on an empty folder, stop it, and start it again; each until its first Metadata answer."""
    begin = machine.now()
    trial.contender.format(trial.folder)
    node = trial.contender.start(trial.folder)
    first = machine.now() - begin
    node.stop()
    begin = machine.now()
    node = trial.contender.start(trial.folder)
    again, spent = machine.now() - begin, cpu_seconds(node)
    node.stop()
    return {"first": first, "again": again, "CPU": spent}


def memory(trial: Trial) -> Values:
    """Read a new node's resident memory at rest, and after large batches and many small requests."""
    with nodes.running(trial.contender, trial.folder) as node:
        time.sleep(SETTLE_SECONDS)
        at_rest = machine.resident_bytes(node.pid)
        with fresh_topic(node) as topic:
            clients.produce(node, topic, value_bytes=1_000, seconds=trial.seconds)
            load = produce_load(topic, records=1, value_bytes=100)
            loadgen.replay(load, node, connections=64, in_flight=5, seconds=trial.seconds)
            after_load = machine.resident_bytes(node.pid)
    return {"at rest": at_rest / MEGABYTE, "after load": after_load / MEGABYTE}


def produce(trial: Trial, *, value_bytes: int, settings: Settings | None = None, durable: bool = False) -> Values:
    """Send through confluent-kafka as fast as it goes."""
    with fresh_topic(trial.node, _topic_settings(trial, durable)) as topic:
        moved = clients.produce(
            trial.node, topic, value_bytes=value_bytes, seconds=trial.seconds, settings=settings or {}
        )
    return _throughput(moved)


def consume(trial: Trial, *, value_bytes: int) -> Values:
    """Read back through confluent-kafka what the load generator wrote just before, in batches of librdkafka's size."""
    wanted = min(CONSUMED_BYTES_MAX, trial.seconds * CONSUMED_BYTES_PER_SECOND[value_bytes])
    records = BATCH_BYTES // value_bytes
    with fresh_topic(trial.node) as topic:
        load = produce_load(topic, records=records, value_bytes=value_bytes)
        batches = round(wanted / (records * value_bytes))
        loadgen.replay(load, trial.node, in_flight=4, seconds=60, requests_max=batches)
        return _throughput(clients.consume(trial.node, topic, value_bytes=value_bytes))


def small_requests(trial: Trial, *, connections: int, in_flight: int, durable: bool = False) -> Values:
    """Produce requests of one record of 100 bytes, acks=all, from the load generator."""
    with fresh_topic(trial.node, _topic_settings(trial, durable)) as topic:
        load = produce_load(topic, records=1, value_bytes=100)
        stopwatch = Stopwatch(trial.node)
        replayed = loadgen.replay(load, trial.node, connections=connections, in_flight=in_flight, seconds=trial.seconds)
        stopwatch.stop()
    return {
        "rate": replayed.requests / replayed.seconds,
        "p50": replayed.p50_us / 1e3,
        "p99": replayed.p99_us / 1e3,
        "CPU": stopwatch.cpu_seconds * 1e6 / replayed.requests,
    }


def produce_latency(trial: Trial, *, rate: int) -> Values:
    """Send 100 bytes at a steady rate through confluent-kafka with linger.ms=0, and time the acknowledgements."""
    seconds = max(trial.seconds, LATENCY_SECONDS_MIN)
    with fresh_topic(trial.node) as topic:
        stopwatch = Stopwatch(trial.node)
        latencies = clients.produce_latencies(trial.node, topic, rate=rate, value_bytes=100, seconds=seconds)
        stopwatch.stop()
    return _percentiles(latencies, stopwatch)


def end_to_end(trial: Trial, *, rate: int) -> Values:
    """Send 100 bytes at a steady rate and time each record from one confluent-kafka client to another."""
    seconds = max(trial.seconds, LATENCY_SECONDS_MIN)
    with fresh_topic(trial.node) as topic:
        stopwatch = Stopwatch(trial.node)
        latencies = clients.end_to_end_latencies(trial.node, topic, rate=rate, value_bytes=100, seconds=seconds)
        stopwatch.stop()
    return _percentiles(latencies, stopwatch)


def _topic_settings(trial: Trial, durable: bool) -> Mapping[str, str]:
    return trial.contender.durable_topic if durable else {}


def _throughput(moved: Moved) -> Values:
    return {
        "rate": moved.bytes / MEGABYTE / moved.seconds,
        "CPU": moved.broker_cpu_seconds / (moved.bytes / GIGABYTE),
    }


def _percentiles(latencies_ms: list[float], stopwatch: Stopwatch) -> Values:
    hundredths = quantiles(latencies_ms, n=100)
    return {
        "p50": hundredths[49],
        "p99": hundredths[98],
        "CPU": 100 * stopwatch.cpu_seconds / stopwatch.seconds,
    }
