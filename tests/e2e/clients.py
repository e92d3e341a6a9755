"""Small doings with a client that is not ours, for tests whose subject is the node."""

import time
from collections.abc import Mapping, Sequence
from typing import Final

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

SECONDS_MAX: Final = 20.0


def create_topic(bootstrap: str, name: str, *, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
    """Create a topic and wait until it is there."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1, config=dict(config or {}))])[name].result(SECONDS_MAX)


def send(bootstrap: str, topic: str, values: Sequence[bytes], *, partition: int = 0) -> list[int]:
    """Send values one by one, each acknowledged, and give their offsets."""
    offsets: list[int] = []
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "message.timeout.ms": 10_000, "log_level": 0})

    def delivered(error: object, message: Message) -> None:
        assert error is None, error
        offsets.append(message.offset())

    for value in values:
        producer.produce(topic, value, partition=partition, on_delivery=delivered)
    assert producer.flush(SECONDS_MAX) == 0
    return offsets


def read_all(
    bootstrap: str, partition: TopicPartition, *, isolation: str = "read_committed"
) -> list[tuple[int, bytes]]:
    """Read a partition from its beginning to its end, as (offset, value)."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "check.crcs": True,
            "isolation.level": isolation,
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition(partition.topic, partition.partition, 0)])
        read: list[tuple[int, bytes]] = []
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            for message in consumer.consume(10_000, 0.2):
                if message.error() is not None:
                    assert message.error().name() == "_PARTITION_EOF", message.error()
                    return read
                read.append((message.offset(), message.value()))
        raise AssertionError(f"{partition} could not be read to its end")
    finally:
        consumer.close()
