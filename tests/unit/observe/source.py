"""A node as a scrape sees it, with numbers that a test can set."""

from collections.abc import Iterable

from riverlog.model.ids import LeaderEpoch, NodeId, Offset
from riverlog.observe.quorum_stats import ControllerSample, QuorumSample, QuorumStats
from riverlog.observe.samples import (
    BrokerSample,
    CommittedSample,
    GroupSample,
    LogDirectorySample,
    PartitionSample,
    PipelineSample,
    TransactionsSample,
)
from riverlog.observe.stats import NodeStats, PartitionStats


class ScrapedNode:
    """Two topics of one and two partitions on one broker."""

    def __init__(self) -> None:
        self.stats = NodeStats()
        self.node_id = NodeId(1)
        self.cluster_id = "yXkgtqzSQXqDIHv2CjQ0OA"
        self.partition_stats = {("orders", 0): PartitionStats(), ("orders", 1): PartitionStats()}
        self.reason_not_ready: str | None = None

    def brokers(self) -> Iterable[BrokerSample]:
        return [BrokerSample(NodeId(1), "127.0.0.1:9092")]

    def topics(self) -> Iterable[tuple[str, int]]:
        return [("orders", 2)]

    def partitions(self) -> Iterable[PartitionSample]:
        for (topic, partition), stats in self.partition_stats.items():
            yield PartitionSample(
                topic=topic,
                partition=partition,
                leader=NodeId(1),
                replicas=(NodeId(1),),
                in_sync_replicas=(NodeId(1),),
                log_start_offset=Offset(5),
                high_watermark=Offset(40),
                last_stable_offset=Offset(33 if partition else 40),
                log_end_offset=Offset(42),
                size_bytes=4_096,
                segments=2,
                damaged_segments=1,
                stats=stats,
            )

    def groups(self) -> Iterable[GroupSample]:
        committed = [CommittedSample("orders", 0, Offset(30), 10), CommittedSample("orders", 1, Offset(38), None)]
        return [GroupSample("billing", "Stable", 3, committed), GroupSample("idle", "Empty", 0, [])]

    def transactions(self) -> TransactionsSample:
        return TransactionsSample({"Ongoing": 2, "Empty": 1}, 1.5)

    def quorum(self) -> QuorumSample:
        return QuorumSample(
            leader_id=NodeId(1),
            epoch=LeaderEpoch(7),
            voted_id=NodeId(2),
            state="leader",
            voters=3,
            high_watermark=Offset(90),
            log_end_offset=Offset(95),
            applied_offset=Offset(88),
            snapshot_age_seconds=60.0,
            snapshot_bytes=4_000,
            stats=QuorumStats(),
            controller=ControllerSample(2, 1, 4, 5),
        )

    def coordinators_loading(self) -> int:
        return 2

    def pipelines(self) -> Iterable[PipelineSample]:
        return [
            PipelineSample("revenue", True, 7, 1_500, 40, 25.5, 90_000, 3, 12),
            PipelineSample("new", False, None, None, None, None, None, 0, None),
        ]

    def log_directories(self) -> Iterable[LogDirectorySample]:
        return [LogDirectorySample("/var/lib/riverlog", online=True, size_bytes=8_192, free_bytes=1 << 30)]

    def not_ready(self) -> str | None:
        return self.reason_not_ready
