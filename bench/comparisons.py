"""Measurements that compare two ways of doing the same, or a broker with what the machine itself can do.

Where a line's point is a gain or a share, that number is a row of its own, next to the two it is made of.
"""

import resource
import socket
import time
from typing import Final

from bench import clients, fetches, limits, loadgen, machine, nodes, relay
from bench.clients import fresh_topic
from bench.frames import fetch_load, greeting, produce_load
from bench.nodes import Riverlog
from bench.probes import BATCH_BYTES, GIGABYTE, MEGABYTE, SETTLE_SECONDS
from bench.trial import Failed, Node, NotRun, Stopwatch, Trial, Values

LINK_DELAY_MS: Final = 50
LINK_BATCH_BYTES: Final = 64_000
BATCHES_READ: Final = 200
"""What a fetching line goes round in: 180 MB, more than a processor's caches hold."""
DISK_IN_FLIGHT: Final = 8
TAIL_BYTES: Final = 1_000
IDLE_FEW: Final = 100
IDLE_MANY: Final = 2_000
CONNECT_SECONDS_MAX: Final = 30
KILOBYTE: Final = 1e3
VALUE_BYTES: Final = 1_000


def batching(trial: Trial) -> Values:
    """Send 100 bytes at a time through confluent-kafka: each alone, then as many at once as the client likes."""
    with fresh_topic(trial.node) as topic:
        single = clients.produce_singly(trial.node, topic, value_bytes=100, seconds=trial.seconds)
    with fresh_topic(trial.node) as topic:
        batched = clients.produce(trial.node, topic, value_bytes=100, seconds=trial.seconds)
    one_by_one, together = (moved.records / moved.seconds for moved in (single, batched))
    return {
        "single": one_by_one,
        "batched": together,
        "gain": together / one_by_one,
        "CPU single": single.broker_cpu_seconds * 1e6 / single.records,
        "CPU batched": batched.broker_cpu_seconds * 1e6 / batched.records,
    }


def many_partitions(trial: Trial, *, partitions: int) -> Values:
    """Send 1 KB records to every partition in turn through confluent-kafka, once each has its first."""
    with fresh_topic(trial.node, partitions=partitions) as topic:
        clients.produce_into_each(trial.node, topic, partitions=partitions, value_bytes=VALUE_BYTES)
        moved = clients.produce(
            trial.node, topic, value_bytes=VALUE_BYTES, seconds=trial.seconds, partitions=partitions
        )
    return {
        "rate": moved.bytes / MEGABYTE / moved.seconds,
        "CPU": moved.broker_cpu_seconds / (moved.bytes / GIGABYTE),
    }


def delayed_link(trial: Trial) -> Values:
    """Produce batches of 64 KB through a link with delay: with one request in flight, then with five."""
    with relay.delayed(trial.node, LINK_DELAY_MS) as link:
        one, five = (_over_link(trial, link, in_flight) for in_flight in (1, 5))
    return {"one": one, "five": five, "gain": five / one}


def _over_link(trial: Trial, link: relay.Link, in_flight: int) -> float:
    records = LINK_BATCH_BYTES // VALUE_BYTES
    with fresh_topic(trial.node) as topic:
        load = produce_load(topic, records=records, value_bytes=VALUE_BYTES)
        replayed = loadgen.replay(load, link, in_flight=in_flight, seconds=trial.seconds)
    return replayed.requests * LINK_BATCH_BYTES / MEGABYTE / replayed.seconds


def fetch(trial: Trial) -> Values:
    """Fetch large batches from the page cache without a client, and see what loopback does without a broker."""
    rate, cpu = _fetch(trial.node, trial.seconds)
    own = limits.loopback_bytes_per_second(trial.seconds) / MEGABYTE
    return {"rate": rate, "loopback's own": own, "share": rate / own, "CPU": cpu}


def sendfile(trial: Trial) -> Values:
    """Fetch the same from a node as it is, and from one that copies what it sends through its memory."""
    assert isinstance(trial.contender, Riverlog)
    found = {}
    for way, contender in (("sendfile", trial.contender), ("copying", trial.contender.copying())):
        with nodes.running(contender, trial.folder / way) as node:
            found[way] = _fetch(node, trial.seconds)
    return {
        "CPU sendfile": found["sendfile"][1],
        "CPU copying": found["copying"][1],
        "CPU ratio": found["sendfile"][1] / found["copying"][1],
        "rate sendfile": found["sendfile"][0],
        "rate copying": found["copying"][0],
    }


def _fetch(node: Node, seconds: float) -> tuple[float, float]:
    """Return megabytes per second, and the broker's CPU seconds per gigabyte."""
    records = BATCH_BYTES // VALUE_BYTES
    with fresh_topic(node) as topic:
        fetches.fill(node, topic, batches=BATCHES_READ, records=records, value_bytes=VALUE_BYTES)
        moved = fetches.fetch_around(node, topic, batches=BATCHES_READ, records=records, seconds=seconds)
    return moved.bytes / MEGABYTE / moved.seconds, moved.broker_cpu_seconds / (moved.bytes / GIGABYTE)


def disk(trial: Trial) -> Values:
    """Produce large batches that are on the medium when acknowledged, and write as much to a file without a broker."""
    with fresh_topic(trial.node, trial.contender.durable_topic) as topic:
        load = produce_load(topic, records=BATCH_BYTES // VALUE_BYTES, value_bytes=VALUE_BYTES)
        stopwatch = Stopwatch(trial.node)
        replayed = loadgen.replay(load, trial.node, in_flight=DISK_IN_FLIGHT, seconds=trial.seconds)
        stopwatch.stop()
    size = replayed.requests * BATCH_BYTES
    rate = size / MEGABYTE / replayed.seconds
    own = limits.disk_bytes_per_second(
        trial.folder, chunk_bytes=BATCH_BYTES, chunks_per_flush=DISK_IN_FLIGHT, seconds=trial.seconds
    )
    return {
        "rate": rate,
        "disk's own": own / MEGABYTE,
        "share": rate / (own / MEGABYTE),
        "CPU": stopwatch.cpu_seconds / (size / GIGABYTE),
    }


def tail_reads(trial: Trial) -> Values:
    """Read the newest record, 1 KB, over and over: one connection, one request in flight."""
    with fresh_topic(trial.node) as topic:
        fetches.fill(trial.node, topic, batches=BATCHES_READ, records=1, value_bytes=TAIL_BYTES)
        load = fetch_load(topic, offset=BATCHES_READ - 1)
        stopwatch = Stopwatch(trial.node)
        replayed = loadgen.replay(load, trial.node, seconds=trial.seconds)
        stopwatch.stop()
    return {
        "p50": replayed.p50_us / 1e3,
        "p99": replayed.p99_us / 1e3,
        "rate": replayed.requests / replayed.seconds,
        "CPU": stopwatch.cpu_seconds * 1e6 / replayed.requests,
    }


def idle_connections(trial: Trial) -> Values:
    """Open connections to a new node, greet on each, leave them alone, and see what memory they take."""
    _allow_descriptors(IDLE_MANY)
    with nodes.running(trial.contender, trial.folder) as node, fresh_topic(node) as topic:
        hello = b"".join(greeting(topic))
        opened: list[socket.socket] = []
        try:
            _greet(opened, node, hello, 1)  # what the first of them brings into memory is not theirs
            time.sleep(SETTLE_SECONDS)
            before = machine.resident_bytes(node.pid)
            taken = {}
            for count in (IDLE_FEW, IDLE_MANY):
                _greet(opened, node, hello, count - len(opened) + 1)
                time.sleep(SETTLE_SECONDS)
                taken[count] = machine.resident_bytes(node.pid)
        finally:
            for connection in opened:
                connection.close()
    return {
        "100, each": (taken[IDLE_FEW] - before) / IDLE_FEW / KILOBYTE,
        "2,000, each": (taken[IDLE_MANY] - before) / IDLE_MANY / KILOBYTE,
        "2,000, node": taken[IDLE_MANY] / MEGABYTE,
    }


def _greet(opened: list[socket.socket], node: Node, hello: bytes, count: int) -> None:
    for _ in range(count):
        connection = socket.create_connection((node.host, node.port), timeout=CONNECT_SECONDS_MAX)
        opened.append(connection)
        connection.sendall(hello)
        for _answer in range(2):
            length = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
            if not length or len(connection.recv(length, socket.MSG_WAITALL)) != length:
                raise Failed(f"connection {len(opened)} was not greeted back")


def _allow_descriptors(count: int) -> None:
    """Raise this process's own limit, which the brokers it starts inherit."""
    wanted = 2 * count  # both ends of a connection do not share a process; files and topics need some as well
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        if hard != resource.RLIM_INFINITY and hard < wanted:
            raise NotRun(f"a process here may open {hard} files, and {wanted} are needed")
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
