"""What `cluster status` counts."""

from dataclasses import replace
from uuid import UUID

import pytest

from riverlog.cli.commands.cluster import ClusterFacts, _show_quorum, lacking, summary
from riverlog.client.admin.admin import ClusterDescription, LogDirectoryDescription
from riverlog.client.admin.quorum import FeatureDescription, QuorumDescription, QuorumReplica
from riverlog.client.network.cluster import Broker, Partition, Topic
from riverlog.model.endpoints import Endpoint
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId, Offset, TopicId, TopicPartition

ONE, TWO, NOBODY = NodeId(1), NodeId(2), NodeId(-1)


TOPIC = Topic(
    "t",
    TopicId(UUID(int=1)),
    (
        Partition(0, ONE, 0, (ONE, TWO), (ONE, TWO)),
        Partition(1, ONE, 0, (ONE, TWO), (ONE,)),
        Partition(2, NOBODY, 0, (TWO,), (TWO,)),
    ),
)


FEATURES = FeatureDescription(12, {"metadata.version": 30}, {"metadata.version": (30, 30)})
QUORUM = QuorumDescription(
    ONE,
    LeaderEpoch(7),
    Offset(90),
    tuple(QuorumReplica(NodeId(node), UUID(int=0), Offset(end), -1, -1) for node, end in ((1, 95), (2, 90))),
    (QuorumReplica(NodeId(3), UUID(int=9), Offset(20), 1_000, -1),),
    {ONE: (Endpoint("CONTROLLER", "c1", 9093),)},
)


def replica(node: int, end: int, lag: int, **known: object) -> dict[str, object]:
    """Return what is told of a node that keeps the metadata; what is not known is left out, or nothing."""
    unknown = {"directory_id": None, "addresses": [], "last_fetch_ms": None, "last_caught_up_ms": None}
    return {"id": node, "end_offset": end, "lag": lag, **unknown, **known}


def test_partitions_that_lack_replicas_or_a_leader_are_listed() -> None:
    assert lacking([TOPIC]) == [
        {"topic": "t", "partition": 1, "leader": 1, "replicas": [1, 2], "isr": [1]},
        {"topic": "t", "partition": 2, "leader": None, "replicas": [2], "isr": [2]},
    ]


def test_partitions_and_directories_are_counted() -> None:
    directories = [
        LogDirectoryDescription(ONE, "/data", {TopicPartition("t", 0): 100, TopicPartition("t", 1): 23}, 1_000, 400),
        LogDirectoryDescription(TWO, "/bad", {}, error=ErrorCode.KAFKA_STORAGE_ERROR),
    ]
    brokers = (Broker(ONE, "a", 9092, "rack-1"), Broker(TWO, "::1", 9093))
    row = summary(
        ClusterFacts(ClusterDescription("id", ONE, brokers, frozenset([TWO])), QUORUM, [TOPIC], directories, FEATURES)
    )
    assert row == {
        "cluster_id": "id",
        "controller": 1,
        "brokers": [
            {"id": 1, "address": "a:9092", "rack": "rack-1", "fenced": False},
            {"id": 2, "address": "[::1]:9093", "rack": None, "fenced": True},
        ],
        "quorum": {
            "leader": 1,
            "epoch": 7,
            "high_watermark": 90,
            "voters": [replica(1, 95, 0, addresses=["c1:9093"]), replica(2, 90, 5)],
            "observers": [replica(3, 20, 75, directory_id="AAAAAAAAAAAAAAAAAAAACQ", last_fetch_ms=1_000)],
        },
        "features": {
            "epoch": 12,
            "finalized": {"metadata.version": 30},
            "supported": {"metadata.version": [30, 30]},
        },
        "topics": 1,
        "partitions": 3,
        "offline_partitions": 1,
        "under_replicated_partitions": 1,
        "log_dirs": [
            {
                "broker": 1,
                "path": "/data",
                "partitions": 2,
                "bytes": 123,
                "usable_bytes": 400,
                "total_bytes": 1000,
                "full": False,
                "error": None,
            },
            {
                "broker": 2,
                "path": "/bad",
                "partitions": 0,
                "bytes": 0,
                "usable_bytes": None,
                "total_bytes": None,
                "full": False,
                "error": "KAFKA_STORAGE_ERROR",
            },
        ],
    }


def test_a_cluster_without_controller_says_so() -> None:
    assert summary(ClusterFacts(ClusterDescription("id", NOBODY, ()), None, [], [], FEATURES))["controller"] is None


def test_the_quorum_is_one_line_where_there_is_one_voter(capsys: pytest.CaptureFixture[str]) -> None:
    _show_quorum(replace(QUORUM, voters=QUORUM.voters[:1], observers=()))
    assert capsys.readouterr().out == "Metadata: node 1 leads in epoch 7, 1 voter, committed up to offset 90\n"
    _show_quorum(replace(QUORUM, leader=NOBODY))
    out = capsys.readouterr().out
    assert "nobody leads" in out
    assert [line.split()[:5] for line in out.splitlines()[3:6]] == [
        ["1", "voter", "95", "0"],
        ["2", "voter", "90", "0"],
        ["3", "observer", "AAAAAAAAAAAAAAAAAAAACQ", "20", "0"],
    ]
