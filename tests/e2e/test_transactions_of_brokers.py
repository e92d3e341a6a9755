"""Transactions of confluent-kafka over two brokers as processes, one of which is killed and comes back.

Coordinators and partitions are spread over both, so that markers and verification go over the network. Offsets of
groups are left to the tests on virtual time: librdkafka 2.16 waits for ever for the coordinator of a group that has
left the metadata for a moment.
"""

import os
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.cluster_processes import BROKER, CONTROLLER, ClusterProcesses

KILLS: Final = int(os.environ.get("BROKER_KILLS", "2"))
NAMES: Final = [f"writer-{number}" for number in range(4)]
TOPIC: Final = "events"
PARTITIONS: Final = 4
SECONDS_MAX: Final = 60.0


class Writer:
    """Writes one number after the other to every partition, each in a transaction."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.name = name
        self.committed = 0
        self._bootstrap = bootstrap

    def run(self, stopping: threading.Event) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "transactional.id": self.name, "linger.ms": 0})
        producer.init_transactions(SECONDS_MAX)
        while not stopping.is_set():
            self._write(producer)

    def _write(self, producer: Producer) -> None:
        """Commit one transaction, however often that takes."""
        while True:
            producer.begin_transaction()
            try:
                for partition in range(PARTITIONS):
                    producer.produce(TOPIC, value=f"{self.name}:{self.committed}", partition=partition)
                self._commit(producer)
            except KafkaException as problem:
                if not problem.args[0].txn_requires_abort():
                    raise
                producer.abort_transaction(SECONDS_MAX)
            else:
                self.committed += 1
                return

    def _commit(self, producer: Producer) -> None:
        while True:
            try:
                producer.commit_transaction(SECONDS_MAX)
            except KafkaException as problem:
                if not problem.args[0].retriable():
                    raise
            else:
                return


def read_committed(bootstrap: str, expected: int) -> Counter[tuple[int, str]]:
    """Read all of the topic, up to where this isolation level may read."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed",
         "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )  # fmt: skip
    consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
    found: Counter[tuple[int, str]] = Counter()
    deadline = time.monotonic() + SECONDS_MAX
    while found.total() < expected and time.monotonic() < deadline:
        for message in consumer.consume(500, timeout=1.0):
            assert message.error() is None, message.error()
            found[message.partition(), message.value().decode()] += 1
    late = consumer.consume(1, timeout=1.0)
    assert not late, "more than was committed"
    consumer.close()
    return found


def test_a_broker_is_killed_under_transactions_that_span_both(tmp_path: Path) -> None:
    settings = {"transaction.state.log.num.partitions": "4"}
    with ClusterProcesses(tmp_path, {1: CONTROLLER, 4: BROKER, 5: BROKER}, settings=settings) as cluster:
        cluster.start()
        bootstrap = cluster.bootstrap(4, 5)
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(SECONDS_MAX)
        writers, stopping = [Writer(bootstrap, name) for name in NAMES], threading.Event()
        with ThreadPoolExecutor(len(writers)) as pool:
            running = [pool.submit(writer.run, stopping) for writer in writers]
            try:
                for _ in range(KILLS):
                    advance(writers, 10)
                    cluster.kill(5)
                    time.sleep(0.5)  # so that the others notice
                    cluster.start(5)
                advance(writers, 10)
            finally:
                stopping.set()
            for each in running:
                each.result(SECONDS_MAX)
        committed = {writer.name: writer.committed for writer in writers}
        print(f"transactions: {committed}")
        expected = {
            (partition, f"{name}:{number}"): 1
            for name, count in committed.items()
            for number in range(count)
            for partition in range(PARTITIONS)
        }
        assert read_committed(bootstrap, len(expected)) == expected


def advance(writers: list[Writer], count: int) -> None:
    """Wait until every writer has committed so many transactions more."""
    goals = {writer: writer.committed + count for writer in writers}
    deadline = time.monotonic() + SECONDS_MAX
    while any(writer.committed < goal for writer, goal in goals.items()):
        assert time.monotonic() < deadline, {writer.name: writer.committed for writer in writers}
        time.sleep(0.02)
