"""A program that copies a topic with confluent-kafka in transactions, offsets and all, some of them aborted.

It says a line for each transaction, and ends when it has reached the input's end. Whatever goes wrong ends it as well:
who started it starts it again.
"""

import argparse
import random
from typing import Final

from confluent_kafka import Consumer, Message, Producer, TopicPartition

INPUT: Final = "in"
OUTPUT: Final = "out"
GROUP: Final = "copier"
_SECONDS_MAX: Final = 20.0
_ABORTED_PART: Final = 0.2


def main() -> None:
    """Copy from where the last one got to the end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    common = {"bootstrap.servers": given.bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200}
    producer = Producer(common | {"transactional.id": "copier", "transaction.timeout.ms": 10_000, "linger.ms": 1})
    producer.init_transactions(_SECONDS_MAX)  # ends what another has left open: its offsets are decided now
    consumer = Consumer(common | {"group.id": GROUP, "enable.auto.commit": False, "isolation.level": "read_committed"})
    names = [TopicPartition(INPUT, index) for index in range(given.partitions)]
    ends = {each.partition: consumer.get_watermark_offsets(each, _SECONDS_MAX)[1] for each in names}
    begin_at_committed(consumer, names)
    while any(each.offset < ends[each.partition] for each in positions(consumer, names)):
        batch = consumer.consume(given.size, 1.0)
        if batch:
            copy(batch, producer, consumer, names, commits=chance.random() >= _ABORTED_PART)


def begin_at_committed(consumer: Consumer, names: list[TopicPartition]) -> None:
    """Read on from what is committed, the very beginning if nothing is."""
    committed = consumer.committed(names, _SECONDS_MAX)
    consumer.assign([TopicPartition(each.topic, each.partition, max(each.offset, 0)) for each in committed])


def positions(consumer: Consumer, names: list[TopicPartition]) -> list[TopicPartition]:
    """Return the next offset to read of each partition: what was committed where nothing was read since."""
    committed = {each.partition: max(each.offset, 0) for each in consumer.committed(names, _SECONDS_MAX)}
    return [
        TopicPartition(each.topic, each.partition, each.offset if each.offset >= 0 else committed[each.partition])
        for each in consumer.position(names)
    ]


def copy(
    batch: list[Message], producer: Producer, consumer: Consumer, names: list[TopicPartition], *, commits: bool
) -> None:
    """Copy some records in one transaction, or give it up and read them again."""
    producer.begin_transaction()
    for message in batch:
        assert message.error() is None, message.error()
        producer.produce(OUTPUT, message.value(), partition=message.partition())
    producer.send_offsets_to_transaction(positions(consumer, names), consumer.consumer_group_metadata(), _SECONDS_MAX)
    producer.flush(_SECONDS_MAX)
    if commits:
        producer.commit_transaction(_SECONDS_MAX)
    else:
        producer.abort_transaction(_SECONDS_MAX)
        begin_at_committed(consumer, names)
    print("committed" if commits else "aborted", flush=True)


if __name__ == "__main__":
    main()
