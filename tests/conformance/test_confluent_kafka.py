"""confluent-kafka against the broker."""

from collections.abc import Callable

import pytest
from confluent_kafka import TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from tests.conformance.adapters import WAIT_SECONDS_MAX, Client, Message
from tests.conformance.adapters.confluent import ConfluentKafka
from tests.conformance.behaviours import LONG_AGO_MS, Administers, JoinsConsumerGroups


class TestConfluentKafka(Administers, JoinsConsumerGroups):
    adapter = ConfluentKafka

    @pytest.fixture
    def admin(self, bootstrap: str) -> AdminClient:
        return AdminClient({"bootstrap.servers": bootstrap})

    def test_offsets_are_listed_by_every_kind_of_time(
        self, client: Client, admin: AdminClient, new_topic: Callable[..., str]
    ) -> None:
        topic = new_topic()
        for offset, age_ms in enumerate((3000, 1000, 2000)):
            client.produce(topic, [Message(b"%d" % offset, partition=0, timestamp_ms=LONG_AGO_MS - age_ms)])
        expected = {
            OffsetSpec.earliest(): 0,
            OffsetSpec.latest(): 3,
            OffsetSpec.max_timestamp(): 1,
            OffsetSpec.for_timestamp(LONG_AGO_MS - 2000): 1,
        }
        for specification, offset in expected.items():
            (future,) = admin.list_offsets({TopicPartition(topic, 0): specification}).values()
            assert future.result(WAIT_SECONDS_MAX).offset == offset, specification

    def test_the_cluster_describes_itself(self, admin: AdminClient, bootstrap: str) -> None:
        cluster = admin.describe_cluster().result(WAIT_SECONDS_MAX)
        assert cluster.cluster_id
        assert cluster.controller.id in {node.id for node in cluster.nodes}
        assert bootstrap in {f"{node.host}:{node.port}" for node in cluster.nodes}

    def test_topics_have_ids_and_leaders(self, admin: AdminClient, new_topic: Callable[..., str]) -> None:
        topic = new_topic(partitions=2)
        described = admin.describe_topics(TopicCollection([topic]))[topic].result(WAIT_SECONDS_MAX)
        assert str(described.topic_id)
        assert [partition.id for partition in described.partitions] == [0, 1]
        assert all(partition.leader is not None for partition in described.partitions)
        assert all(len(partition.isr) == 1 for partition in described.partitions)

    def test_a_node_s_settings_can_be_read(self, admin: AdminClient) -> None:
        (node,) = admin.list_topics(timeout=WAIT_SECONDS_MAX).brokers.values()
        (future,) = admin.describe_configs([ConfigResource(ResourceType.BROKER, str(node.id))]).values()
        settings = future.result(WAIT_SECONDS_MAX)
        assert settings["node.id"].value == str(node.id)
        assert settings["node.id"].is_read_only
