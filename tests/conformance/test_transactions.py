"""Transactions of the Python clients: committed and aborted records, offsets with the output, and zombies."""

import asyncio
import gc
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import ProducerFenced
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.conformance.adapters import WAIT_SECONDS_MAX
from tests.conformance.transacting import COMMITTED, EVERYTHING, read

NewTopic = Callable[..., str]
Fresh = Callable[[], str]


def producer_of(bootstrap: str, transactional_id: str) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "linger.ms": 1})
    producer.init_transactions(WAIT_SECONDS_MAX)
    return producer


def refusal_of(act: Callable[[float], None]) -> int | None:
    """Return the code with which librdkafka refuses; nothing of the error is kept, and so none of its producer."""
    try:
        act(WAIT_SECONDS_MAX)
    except KafkaException as error:
        code: int = error.args[0].code()
        return code
    return None


def test_confluent_kafka_commits_and_aborts(bootstrap: str, new_topic: NewTopic, fresh_name: Fresh) -> None:
    topic = new_topic()
    producer = producer_of(bootstrap, fresh_name())
    for number, value in enumerate(EVERYTHING):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush(WAIT_SECONDS_MAX)
        (producer.abort_transaction if number % 4 == 3 else producer.commit_transaction)(WAIT_SECONDS_MAX)
    assert read(bootstrap, topic, "read_committed") == COMMITTED
    assert read(bootstrap, topic, "read_uncommitted") == EVERYTHING


def test_confluent_kafka_commits_offsets_with_the_output(
    bootstrap: str, new_topic: NewTopic, fresh_name: Fresh
) -> None:
    topic, output, group = new_topic(), new_topic(), fresh_name()
    producer = producer_of(bootstrap, fresh_name())
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    place = TopicPartition(topic, 0)
    for offset, commits in ((5, True), (9, False)):
        producer.begin_transaction()
        producer.produce(output, b"%d" % offset, partition=0)
        positions = [TopicPartition(topic, 0, offset)]
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), WAIT_SECONDS_MAX)
        (producer.commit_transaction if commits else producer.abort_transaction)(WAIT_SECONDS_MAX)
    assert [each.offset for each in consumer.committed([place], WAIT_SECONDS_MAX)] == [5]
    assert read(bootstrap, output, "read_committed") == [b"5"]
    consumer.close()


def test_confluent_kafka_fences_a_zombie(bootstrap: str, new_topic: NewTopic, fresh_name: Fresh) -> None:
    topic, transactional_id = new_topic(), fresh_name()
    zombie = producer_of(bootstrap, transactional_id)
    zombie.begin_transaction()
    zombie.produce(topic, b"zombie", partition=0)
    zombie.flush(WAIT_SECONDS_MAX)
    successor = producer_of(bootstrap, transactional_id)
    assert refusal_of(zombie.commit_transaction) == KafkaError._FENCED
    successor.begin_transaction()
    successor.produce(topic, b"successor", partition=0)
    successor.commit_transaction(WAIT_SECONDS_MAX)
    assert read(bootstrap, topic, "read_committed") == [b"successor"]


def test_aiokafka_commits_aborts_and_is_fenced(bootstrap: str, new_topic: NewTopic, fresh_name: Fresh) -> None:
    topic, transactional_id = new_topic(), fresh_name()

    async def write() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id) as producer:
            for number, value in enumerate(EVERYTHING):
                await producer.begin_transaction()
                await producer.send_and_wait(topic, value, partition=0)
                await (producer.abort_transaction() if number % 4 == 3 else producer.commit_transaction())
            async with AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id):
                await producer.begin_transaction()
                with pytest.raises(ProducerFenced):
                    await producer.send_and_wait(topic, b"zombie", partition=0)

    async def read_committed() -> list[bytes]:
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
        )
        async with consumer:
            return [(await consumer.getone()).value for _ in COMMITTED]

    asyncio.run(asyncio.wait_for(write(), 2 * WAIT_SECONDS_MAX))
    gc.collect()  # a fenced producer leaves errors that nobody heard, and they speak up when they are collected: here
    assert asyncio.run(asyncio.wait_for(read_committed(), WAIT_SECONDS_MAX)) == COMMITTED
    assert read(bootstrap, topic, "read_uncommitted") == EVERYTHING
