"""The broker for other people's tests, used the way they use it."""

import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from riverlog.model.setting import BadSetting
from riverlog.testing import RunningBroker, running_broker


def round_trip(broker: RunningBroker, topic: str, value: bytes) -> bytes:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    sent = producer.send(topic, value, partition=0).get(10)
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, consumer_timeout_ms=10_000)
    consumer.assign([TopicPartition(topic, 0)])
    consumer.seek(TopicPartition(topic, 0), sent.offset)
    record = next(consumer)
    consumer.close()
    return record.value


def test_a_real_client_uses_the_fixture(riverlog_broker: RunningBroker) -> None:
    riverlog_broker.create_topic("orders", partitions=3, configs={"retention.ms": "60000"})
    assert round_trip(riverlog_broker, "orders", b"2 lamps") == b"2 lamps"
    host, _, port = riverlog_broker.bootstrap_servers.rpartition(":")
    assert riverlog_broker.address == (host, int(port))


def test_each_test_has_a_fresh_broker(riverlog_broker: RunningBroker, riverlog_broker_session: RunningBroker) -> None:
    assert riverlog_broker.bootstrap_servers != riverlog_broker_session.bootstrap_servers
    riverlog_broker.create_topic("orders")
    riverlog_broker_session.create_topic("orders")
    assert round_trip(riverlog_broker_session, "orders", b"x") == b"x"


def test_settings_have_kafkas_names_with_underscores() -> None:
    with running_broker(num_partitions=4, auto_create_topics_enable=True) as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        assert len(producer.partitions_for("made-by-asking")) == 4
        producer.close()


def test_nothing_is_left_behind() -> None:
    threads = threading.active_count()
    with running_broker() as broker:
        folder = Path(broker.folder)
        assert folder.is_dir()
        address = broker.address
    assert not folder.exists()
    assert threading.active_count() == threads
    with socket.socket() as gone:
        assert gone.connect_ex(address) != 0


def test_a_wrong_setting_fails_where_it_was_given() -> None:
    with pytest.raises(BadSetting, match=r"num\.partitions"), running_broker(num_partitions=0):
        pass


def test_the_plugin_costs_other_test_runs_nothing() -> None:
    program = (
        "import sys, pytest; before = set(sys.modules); import riverlog.testing;"
        "print(*sorted(name for name in set(sys.modules) - before if name.startswith(('riverlog', 'asyncio'))))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert loaded == ["riverlog", "riverlog.testing"]
