"""kill -9, twenty times in a row, in the middle of appending, of rolling a segment and of deleting a topic.

One idempotent producer lives through all of it, and retries by itself. After every kill the node must come up again and
give back every acknowledged record; topics that were created are there, topics that were deleted are not.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic

from riverlog.model.ids import Offset, TopicPartition
from riverlog.verify.checker import judge
from riverlog.verify.history import History
from tests.e2e.clients import SECONDS_MAX, create_topic, read_all
from tests.support.node import Node

KILLS: Final = 20
SETTINGS: Final = {
    "log.segment.bytes": "16384",
    "log.index.interval.bytes": "512",
    "log.segment.delete.delay.ms": "0",
    "metrics.port": "0",
}
TOPICS: Final = {"orders-os": "os", "orders-fsync": "fsync"}
PARTITIONS: Final = [TopicPartition(topic, number) for topic in TOPICS for number in range(2)]
UNDER_WAY_MAX: Final = 500


class Writer:
    """Sends numbered values to every partition, for as long as it is told to, and remembers each promise."""

    def __init__(self, bootstrap: str) -> None:
        self.history = History()
        self.acknowledged = 0
        self.failures: list[str] = []
        self._under_way = dict.fromkeys(PARTITIONS, 0)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.size": 4_000,  # far below the size of a segment
                "message.timeout.ms": 60_000,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "log_level": 0,
            }
        )

    def write_until(self, enough: Callable[[], bool]) -> None:
        """Keep writing, a little at a time, until something has happened."""
        deadline = time.monotonic() + SECONDS_MAX
        while not enough():
            assert time.monotonic() < deadline, "nothing happened that could be interrupted"
            assert self.failures == []
            for partition, under_way in self._under_way.items():
                if under_way < UNDER_WAY_MAX:
                    self._send(partition)
            self._producer.poll(0.001)

    def settle(self) -> None:
        """Wait until every value sent so far is acknowledged."""
        assert self._producer.flush(SECONDS_MAX) == 0, "the producer could not deliver what it holds"
        assert self.failures == []

    def _send(self, partition: TopicPartition) -> None:
        write = self.history.write("writer", partition, str(len(self.history.writes)))
        self._under_way[partition] += 1

        def delivered(error: object, message: Message) -> None:
            if error is not None:
                self.failures.append(f"{partition} value {write.value}: {error}")
                return
            self.history.acknowledged(write, Offset(message.offset()))
            self._under_way[partition] -= 1
            self.acknowledged += 1

        padded = f"{write.value}:".encode().ljust(200, b".")
        self._producer.produce(partition.topic, padded, partition=partition.partition, on_delivery=delivered)


class Churn:
    """Creates and deletes topics in a thread of its own, and remembers what was promised about them."""

    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 100, "log_level": 0})
        self._number = 0
        self._on = threading.Event()
        self.created: set[str] = set()
        self.deleting: set[str] = set()
        self.deleted: set[str] = set()

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Run beside the block."""
        self._on.set()
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._on.clear()
            thread.join()

    def check(self, existing: set[str]) -> None:
        assert self.created - self.deleting <= existing, "a created topic is gone"
        assert not self.deleted & existing, "a deleted topic is back"

    def _run(self) -> None:
        while self._on.is_set():
            name = f"churn-{self._number}"
            self._number += 1
            try:
                self._admin.create_topics([NewTopic(name, 4, 1)], request_timeout=2)[name].result()
                self.created.add(name)
                self.deleting.add(name)
                self._admin.delete_topics([name], request_timeout=2)[name].result()
                self.deleted.add(name)
            except KafkaException:
                continue  # the node was killed: nothing was promised


def read_back(bootstrap: str, history: History, partition: TopicPartition, reader: str) -> None:
    """Read a partition from the beginning to the end, and note what was found."""
    reading = history.read_from(reader, partition, Offset(0))
    found = read_all(bootstrap, Place(*partition))
    assert [offset for offset, _ in found] == list(range(len(found))), f"{reader} finds gaps in {partition}"
    history.saw(reading, ((Offset(offset), value.partition(b":")[0].decode()) for offset, value in found))
    history.passed(reading, Offset(len(found)), at_end=True)


def segments(node: Node) -> int:
    return sum(1 for _ in node.data.glob("orders-*/*.log"))


def moment(kind: str, node: Node, writer: Writer, churn: Churn, chance: random.Random) -> Callable[[], bool]:
    """Choose when to strike: after some acknowledgements, when a segment was rolled, when a topic is being deleted."""
    match kind:
        case "append":
            acknowledged = writer.acknowledged + chance.randrange(200, 2_000)
            return lambda: writer.acknowledged >= acknowledged
        case "roll":
            rolled = segments(node) + chance.randrange(1, 8)
            return lambda: segments(node) >= rolled
        case _:
            deleting = len(churn.deleting) + chance.randrange(1, 4)
            return lambda: len(churn.deleting) >= deleting


@pytest.mark.timeout(300)
def test_nothing_acknowledged_is_lost_by_twenty_kills(tmp_path: Path) -> None:
    chance = random.Random(os.environ.get("KILLS_SEED", "20"))
    with Node(tmp_path, settings=SETTINGS) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        for topic, durability in TOPICS.items():
            create_topic(node.bootstrap, topic, partitions=2, config={"durability": durability})
        writer = Writer(node.bootstrap)
        churn = Churn(node.bootstrap)
        for number in range(KILLS):
            kind = ("append", "roll", "delete")[number % 3]
            with churn.going_on():
                writer.write_until(moment(kind, node, writer, churn, chance))
                node.kill()
            node.start()
            churn.check(set(admin.list_topics(timeout=SECONDS_MAX).topics))
            read_back(node.bootstrap, writer.history, chance.choice(PARTITIONS), f"after kill {number} ({kind})")
        writer.settle()
        for partition in PARTITIONS:
            read_back(node.bootstrap, writer.history, partition, "at the end")
        assert judge(writer.history).anomalies == ()
        assert writer.acknowledged > KILLS * 100
        assert segments(node) > KILLS
        assert churn.deleted
