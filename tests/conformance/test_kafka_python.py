"""kafka-python against the broker."""

from collections.abc import Callable, Iterator

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec

from tests.conformance.adapters import Client, Message
from tests.conformance.adapters.kafka_python import KafkaPython
from tests.conformance.behaviours import LONG_AGO_MS, Administers, JoinsGroups


class TestKafkaPython(Administers, JoinsGroups):
    adapter = KafkaPython

    @pytest.fixture
    def admin(self, bootstrap: str) -> Iterator[KafkaAdminClient]:
        with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
            yield admin

    def test_offsets_are_listed_by_every_kind_of_time(
        self, client: Client, admin: KafkaAdminClient, new_topic: Callable[..., str]
    ) -> None:
        topic = new_topic()
        for offset, age_ms in enumerate((3000, 1000, 2000)):
            client.produce(topic, [Message(b"%d" % offset, partition=0, timestamp_ms=LONG_AGO_MS - age_ms)])
        expected = {
            OffsetSpec.EARLIEST: 0,
            OffsetSpec.LATEST: 3,
            OffsetSpec.MAX_TIMESTAMP: 1,
            LONG_AGO_MS - 2000: 1,
        }
        for specification, offset in expected.items():
            (found,) = admin.list_partition_offsets({TopicPartition(topic, 0): specification}).values()
            assert found.offset == offset, specification

    def test_log_folders_show_their_size(
        self, client: Client, admin: KafkaAdminClient, new_topic: Callable[..., str]
    ) -> None:
        topic = new_topic()
        client.produce(topic, [Message(bytes(50_000), partition=0)])
        (size,) = [
            partition["partition_size"]
            for node in admin.describe_log_dirs()
            for folder in node["log_dirs"]
            for described in folder["topics"]
            if described["name"] == topic
            for partition in described["partitions"]
        ]
        assert 50_000 < size < 51_000

    def test_a_setting_can_be_taken_back(self, admin: KafkaAdminClient, new_topic: Callable[..., str]) -> None:
        topic = new_topic(retention_ms="1000000")
        admin.reset_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": None})])
        settings = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="all")
        assert settings["topic"][topic]["retention.ms"]["value"] == "604800000"

    def test_one_reader_follows_many_partitions(
        self, client: Client, bootstrap: str, new_topic: Callable[..., str]
    ) -> None:
        topic = new_topic(partitions=4)
        client.produce(topic, [Message(b"%d" % index, partition=index % 4) for index in range(40)])
        places = [TopicPartition(topic, partition) for partition in range(4)]
        consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, consumer_timeout_ms=15_000)
        with consumer:
            consumer.assign(places)
            consumer.seek_to_beginning()
            read = {next(consumer).value for _ in range(40)}
            assert read == {b"%d" % index for index in range(40)}
            consumer.seek_to_end()
            assert [consumer.position(place) for place in places] == [10, 10, 10, 10]
