"""A broker, two different Kafka clients, and a day's orders.

Starts `riverlog dev` as you would, lets a shop write with confluent-kafka and a warehouse with kafka-python, reads
everything back with each of them, and stops the broker.
"""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import confluent_kafka
import kafka
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 3
ORDERS = [
    ("ada", "2 lamps"),
    ("grace", "1 chair"),
    ("alan", "1 desk"),
    ("ada", "1 desk"),
    ("margaret", "4 chairs"),
    ("grace", "1 more chair"),
]


class Event(NamedTuple):
    """One record as a reader sees it."""

    partition: int
    offset: int
    customer: str
    what: dict[str, str]


def main() -> None:
    """Tell the story from start to end; every line printed is something that has just happened."""
    with broker() as (bootstrap, metrics):
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("orders", PARTITIONS)])["orders"].result()
        say(f"created the topic 'orders' with {PARTITIONS} partitions")

        take_orders(bootstrap)
        say(f"the shop took {len(ORDERS)} orders with confluent-kafka {confluent_kafka.__version__}, idempotently")

        by_kafka_python = read_with_kafka_python(bootstrap, count=len(ORDERS))
        say(f"the warehouse read them with kafka-python {kafka.__version__}:\n")
        show(by_kafka_python)

        ship(bootstrap, by_kafka_python)
        say("the warehouse answered each with kafka-python, lz4-compressed, into the same topic")

        everything = read_with_confluent_kafka(bootstrap, count=2 * len(ORDERS))
        say("the shop read the whole story with confluent-kafka:\n")
        show(everything)

        assert [event for event in everything if event.what["event"] == "ordered"] == by_kafka_python
        for customer in {customer for customer, _ in ORDERS}:
            assert len({event.partition for event in everything if event.customer == customer}) == 1
        say(
            "both clients saw the same records at the same offsets, and each customer's stay in one partition, in order"
        )

        with urllib.request.urlopen(f"{metrics}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        ours = 'riverlog_partition_messages_in_total{topic="orders"'
        counted = [line for line in sorted(lines) if line.startswith(ours)]
        say(f"the broker counted too ({metrics}/metrics):\n")
        print(*(f"    {line}" for line in counted), sep="\n", end="\n\n")
    say("asked the broker to stop; it ended with exit code 0")
    print("\nNow yours:  .venv/bin/riverlog dev   and point any Kafka client at 127.0.0.1:9092\n")


@contextmanager
def broker() -> Iterator[tuple[str, str]]:
    """Run a broker in a process of its own; give the addresses that it prints once it is ready."""
    started = time.monotonic()
    command = [str(Path(sys.executable).with_name("riverlog")), "dev", "--ephemeral", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        ready = process.stdout.readline()
        if not ready:
            raise SystemExit("the broker did not start; run `riverlog dev --ephemeral --port 0` to see why")
        addresses = dict(word.split("=", 1) for word in ready.split() if "=" in word)
        print()
        say(f"started a broker in {time.monotonic() - started:.2f} s: {ready.strip()}")
        yield addresses["kafka"], addresses["metrics"]
    finally:
        process.terminate()
        code = process.wait(20)
        process.stdout.close()
    assert code == 0


def take_orders(bootstrap: str) -> None:
    """Send each order with its customer as the key: same customer, same partition."""
    # librdkafka hashes keys in its own way unless told to use Kafka's, as the Java and Python clients do.
    settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "partitioner": "murmur2_random"}
    producer = confluent_kafka.Producer(settings)
    for customer, item in ORDERS:
        producer.produce("orders", key=customer, value=json.dumps({"event": "ordered", "item": item}))
    assert producer.flush(10) == 0


def ship(bootstrap: str, orders: list[Event]) -> None:
    """Write an answer for each order, with another client and a compressed batch."""
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, compression_type="lz4")
    for order in orders:
        answer = json.dumps({"event": "shipped", "item": order.what["item"]})
        producer.send("orders", key=order.customer.encode(), value=answer.encode())
    producer.flush(10)
    producer.close()


def read_with_kafka_python(bootstrap: str, count: int) -> list[Event]:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, consumer_timeout_ms=10_000)
    partitions = [kafka.TopicPartition("orders", number) for number in range(PARTITIONS)]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    events = [
        Event(record.partition, record.offset, record.key.decode(), json.loads(record.value))
        for record in islice(consumer, count)
    ]
    consumer.close()
    return sorted(events, key=lambda event: event[:2])


def read_with_confluent_kafka(bootstrap: str, count: int) -> list[Event]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "-", "enable.auto.commit": False})
    consumer.assign([confluent_kafka.TopicPartition("orders", number, 0) for number in range(PARTITIONS)])
    events: list[Event] = []
    while len(events) < count:
        message = consumer.poll(10)
        assert message is not None and message.error() is None
        events.append(Event(message.partition(), message.offset(), message.key().decode(), json.loads(message.value())))
    consumer.close()
    return sorted(events, key=lambda event: event[:2])


def show(events: list[Event]) -> None:
    """Print records as they stand in the log: by partition, in the order of their offsets."""
    for event in events:
        where = f"orders-{event.partition} @ {event.offset}"
        print(f"    {where:<14} {event.customer:<9} {event.what['event']} {event.what['item']}")
    print()


def say(what: str) -> None:
    print(f"· {what}")


if __name__ == "__main__":
    main()
