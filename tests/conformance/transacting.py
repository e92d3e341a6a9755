"""What every client that writes in transactions must be able to do, written once."""

from collections.abc import Callable
from typing import Final

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.conformance.adapters import WAIT_SECONDS_MAX, Client, Message, Refused, Transacts

NewTopic = Callable[..., str]
COUNT: Final = 20
COMMITTED: Final = [b"%d" % number for number in range(COUNT) if number % 4 != 3]
EVERYTHING: Final = [b"%d" % number for number in range(COUNT)]
INVALID_PRODUCER_EPOCH: Final = 47
PRODUCER_FENCED: Final = 90


class WritesTransactions:
    """Beside `ReadsAndWrites`, which has the client."""

    def test_transactions_are_committed_and_aborted(
        self, client: Client, new_topic: NewTopic, bootstrap: str, fresh_name: Callable[[], str]
    ) -> None:
        assert isinstance(client, Transacts)
        topic, writer = new_topic(), client.transactional(fresh_name())
        for number, value in enumerate(EVERYTHING):
            writer.begin()
            writer.write(topic, value)
            writer.end(commits=number % 4 != 3)
        assert read(bootstrap, topic, "read_committed") == COMMITTED
        assert read(bootstrap, topic, "read_uncommitted") == EVERYTHING

    def test_offsets_are_committed_with_the_output(
        self, client: Client, new_topic: NewTopic, bootstrap: str, fresh_name: Callable[[], str]
    ) -> None:
        assert isinstance(client, Transacts)
        topic, output, group, transactional_id = new_topic(), new_topic(), fresh_name(), fresh_name()
        client.produce(topic, [Message(value, partition=0) for value in EVERYTHING])
        for commits, offset in ((False, None), (True, 5), (False, 5), (True, 10)):
            client.copy(topic, output, group=group, transactional_id=transactional_id, count=5, commits=commits)
            assert committed(bootstrap, group, topic) == offset
        assert read(bootstrap, output, "read_committed") == EVERYTHING[:10]
        assert len(read(bootstrap, output, "read_uncommitted")) == 20

    def test_a_zombie_is_fenced(
        self, client: Client, new_topic: NewTopic, bootstrap: str, fresh_name: Callable[[], str]
    ) -> None:
        assert isinstance(client, Transacts)
        topic, transactional_id = new_topic(), fresh_name()
        zombie = client.transactional(transactional_id)
        zombie.begin()
        zombie.write(topic, b"zombie")
        successor = client.transactional(transactional_id)
        successor.begin()
        successor.write(topic, b"successor")
        with pytest.raises(Refused) as refused:
            zombie.end(commits=True)
        assert refused.value.code in (INVALID_PRODUCER_EPOCH, PRODUCER_FENCED)
        successor.end(commits=True)
        assert read(bootstrap, topic, "read_committed") == [b"successor"]


def committed(bootstrap: str, group: str, topic: str) -> int | None:
    """Return the group's offset, once no transaction is about to change it."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "isolation.level": "read_committed"})
    (found,) = consumer.committed([TopicPartition(topic, 0)], WAIT_SECONDS_MAX)
    consumer.close()
    return found.offset if found.offset >= 0 else None


def read(bootstrap: str, topic: str, isolation_level: str) -> list[bytes]:
    """Read a partition to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": isolation_level,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    try:
        while True:
            message = consumer.poll(WAIT_SECONDS_MAX)
            assert message is not None, f"{topic} could not be read to its end"
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                return values
            values.append(message.value())
    finally:
        consumer.close()
