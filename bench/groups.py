"""What groups cost: from subscribing to having partitions, committing, and reading as a member of one."""

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from confluent_kafka import Consumer, TopicPartition

from bench import clients, loadgen
from bench.clients import REQUEST_SECONDS_MAX, Moved, fresh_topic
from bench.frames import produce_load
from bench.probes import BATCH_BYTES, CONSUMED_BYTES_MAX, CONSUMED_BYTES_PER_SECOND, MEGABYTE
from bench.trial import Failed, Node, Stopwatch, Trial, Values

PROTOCOLS: Final = {"classic": "classic", "KIP-848": "consumer"}
POLL_SECONDS: Final = 0.001
FIRST_COMMITS: Final = 20
VALUE_BYTES: Final = 1_000


def join(trial: Trial, *, members: int) -> Values:
    """Subscribe all members of a new group at once, and wait until each has its one partition; by each protocol."""
    with fresh_topic(trial.node, partitions=members) as topic:
        return {name: _join(trial.node, topic, members, protocol) for name, protocol in PROTOCOLS.items()}


def _join(node: Node, topic: str, members: int, protocol: str) -> float:
    group = f"bench-{uuid.uuid4().hex[:12]}"
    consumers = [_member(node, group, protocol) for _ in range(members)]
    try:
        begin = time.monotonic()
        for consumer in consumers:
            consumer.subscribe([topic])
        while any(len(consumer.assignment()) != 1 for consumer in consumers):
            if time.monotonic() > begin + REQUEST_SECONDS_MAX:
                having = [len(consumer.assignment()) for consumer in consumers]
                raise Failed(f"after {REQUEST_SECONDS_MAX} s members have {having} partitions")
            for consumer in consumers:
                consumer.poll(0)
            time.sleep(POLL_SECONDS)
        return time.monotonic() - begin
    finally:
        # All at once: one that leaves alone may wait for the others, which nobody polls any more.
        with ThreadPoolExecutor(members) as leaving:
            list(leaving.map(Consumer.close, consumers))


def commits(trial: Trial) -> Values:
    """Commit one offset after the other as the only member of a group, each when the last is acknowledged."""
    with fresh_topic(trial.node) as topic:
        consumer = _member(trial.node, f"bench-{uuid.uuid4().hex[:12]}", "classic")
        try:
            consumer.subscribe([topic])
            deadline = time.monotonic() + REQUEST_SECONDS_MAX
            while not consumer.assignment():
                consumer.poll(POLL_SECONDS)
                if time.monotonic() > deadline:
                    raise Failed(f"no partition came within {REQUEST_SECONDS_MAX} s")
            for offset in range(FIRST_COMMITS):
                consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
            done = 0
            stopwatch = Stopwatch(trial.node)
            deadline = time.monotonic() + trial.seconds
            while time.monotonic() < deadline:
                consumer.commit(offsets=[TopicPartition(topic, 0, done)], asynchronous=False)
                done += 1
            stopwatch.stop()
        finally:
            consumer.close()
    return {"rate": done / stopwatch.seconds, "CPU": stopwatch.cpu_seconds * 1e6 / done}


def consume(trial: Trial) -> Values:
    """Read a topic as the only member of a group and by assignment, each before and after the other: the first to read
    finds nothing checked and mapped yet."""
    wanted = min(CONSUMED_BYTES_MAX, trial.seconds * CONSUMED_BYTES_PER_SECOND[VALUE_BYTES])
    records = BATCH_BYTES // VALUE_BYTES
    with fresh_topic(trial.node) as topic:
        load = produce_load(topic, records=records, value_bytes=VALUE_BYTES)
        batches = round(wanted / (records * VALUE_BYTES))
        loadgen.replay(load, trial.node, in_flight=4, seconds=60, requests_max=batches)
        moved = {True: list[Moved](), False: list[Moved]()}
        for as_member in (True, False, False, True):
            moved[as_member].append(clients.consume(trial.node, topic, value_bytes=VALUE_BYTES, as_member=as_member))
    member_rate, assigned_rate = (_megabytes_per_second(moved[as_member]) for as_member in (True, False))
    return {"member": member_rate, "assigned": assigned_rate, "share": member_rate / assigned_rate}


def _megabytes_per_second(moved: list[Moved]) -> float:
    return sum(each.bytes for each in moved) / MEGABYTE / sum(each.seconds for each in moved)


def _member(node: Node, group: str, protocol: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": f"{node.host}:{node.port}",
            "group.id": group,
            "group.protocol": protocol,
            "enable.auto.commit": False,
            "log_level": 2,
        }
    )
