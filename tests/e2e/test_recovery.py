"""kill -9 of a node with many partitions, some small, some large enough to be recovered by other processes."""

import time
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.e2e.clients import SECONDS_MAX, create_topic, send
from tests.support.node import Node

MANY: Final = 300
LARGE: Final = 4
LARGE_RECORDS: Final = 3_000
VALUE: Final = bytes(1_000)


def read_ends(bootstrap: str, partitions: list[TopicPartition]) -> dict[tuple[str, int], int]:
    """Read the first record of each partition, and give where each ends."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "fetch.message.max.bytes": 20_000,
            "fetch.queue.backoff.ms": 5,
            "fetch.wait.max.ms": 10,  # what asks for the end of a partition stands behind a fetch
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition(each.topic, each.partition, 0) for each in partitions])
        missing = {(each.topic, each.partition) for each in partitions}
        deadline = time.monotonic() + SECONDS_MAX
        while missing:
            assert time.monotonic() < deadline, f"{len(missing)} partitions gave nothing, such as {min(missing)}"
            for message in consumer.consume(1_000, 0.1):
                assert message.error() is None, message.error()
                missing.discard((message.topic(), message.partition()))
        return {
            (each.topic, each.partition): consumer.get_watermark_offsets(each, timeout=SECONDS_MAX)[1]
            for each in partitions
        }
    finally:
        consumer.close()


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_many_partitions_come_back_after_a_kill_and_after_a_stop(tmp_path: Path, durability: str) -> None:
    with Node(tmp_path, settings={"metrics.port": "-1"}) as node:
        create_topic(node.bootstrap, "small", partitions=MANY, config={"durability": durability})
        create_topic(node.bootstrap, "large", partitions=LARGE, config={"durability": durability})
        producer = Producer({"bootstrap.servers": node.bootstrap, "batch.size": 16_384, "log_level": 0})
        for index in range(MANY):
            producer.produce("small", VALUE, partition=index)
        for number in range(LARGE * LARGE_RECORDS):
            producer.produce("large", VALUE, partition=number % LARGE)
        assert producer.flush(SECONDS_MAX) == 0
        partitions = [TopicPartition("small", index) for index in range(MANY)]
        partitions += [TopicPartition("large", index) for index in range(LARGE)]
        ends = {("small", index): 1 for index in range(MANY)} | {
            ("large", index): LARGE_RECORDS for index in range(LARGE)
        }
        node.kill()
        node.start()
        assert send(node.bootstrap, "large", [b"at once"], partition=LARGE - 1) == [LARGE_RECORDS]
        ends["large", LARGE - 1] += 1
        assert read_ends(node.bootstrap, partitions) == ends
        node.stop()
        node.start()
        assert read_ends(node.bootstrap, partitions) == ends


def test_a_node_can_be_killed_while_it_recovers(tmp_path: Path) -> None:
    with Node(tmp_path, settings={"metrics.port": "-1"}) as node:
        create_topic(node.bootstrap, "large", partitions=LARGE)
        producer = Producer({"bootstrap.servers": node.bootstrap, "batch.size": 16_384, "log_level": 0})
        for number in range(LARGE * LARGE_RECORDS):
            producer.produce("large", VALUE, partition=number % LARGE)
        assert producer.flush(SECONDS_MAX) == 0
        for _ in range(5):
            node.kill()
            node.start()
        partitions = [TopicPartition("large", index) for index in range(LARGE)]
        ends = read_ends(node.bootstrap, partitions)
        assert ends == {("large", index): LARGE_RECORDS for index in range(LARGE)}
