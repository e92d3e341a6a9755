"""The document of `cluster metadata`."""

from uuid import UUID

from riverlog.cli.commands.cluster_metadata import MetadataFacts, document_of
from riverlog.client.admin.admin import ClusterDescription
from riverlog.client.network.cluster import Broker, Partition, Topic
from riverlog.model.ids import NodeId, TopicId

ONE, TWO, NOBODY = NodeId(1), NodeId(2), NodeId(-1)


def test_topics_are_told_with_their_settings_and_partitions() -> None:
    orders = Topic("orders", TopicId(UUID(int=7)), (Partition(0, NOBODY, 3, (ONE, TWO), (TWO,)),))
    audit = Topic("audit", TopicId(UUID(int=8)), (), is_internal=True)
    cluster = ClusterDescription("id", NOBODY, (Broker(ONE, "a", 9092, "rack-1"),))
    settings: dict[str, dict[str, str | None]] = {"orders": {"retention.ms": "1000"}, "audit": {}}
    assert document_of(MetadataFacts(cluster, [orders, audit], settings)) == {
        "cluster_id": "id",
        "controller": None,
        "brokers": [{"id": 1, "address": "a:9092", "rack": "rack-1"}],
        "topics": [
            {
                "topic": "audit",
                "topic_id": "00000000-0000-0000-0000-000000000008",
                "internal": True,
                "settings": {},
                "partitions": [],
            },
            {
                "topic": "orders",
                "topic_id": "00000000-0000-0000-0000-000000000007",
                "internal": False,
                "settings": {"retention.ms": "1000"},
                "partitions": [{"partition": 0, "leader": None, "leader_epoch": 3, "replicas": [1, 2], "isr": [2]}],
            },
        ],
    }
