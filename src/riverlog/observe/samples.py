"""What a scrape of the metrics sees of a node: its parts as plain numbers, and the node as their source."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from riverlog.model.ids import NodeId, Offset
from riverlog.observe.quorum_stats import QuorumSample
from riverlog.observe.stats import NodeStats, PartitionStats


class BrokerSample(NamedTuple):
    """One broker of the cluster, as its metadata names it."""

    node_id: NodeId
    address: str


class PartitionSample(NamedTuple):
    """One partition, at the moment of a scrape."""

    topic: str
    partition: int
    leader: NodeId
    replicas: Sequence[NodeId]
    in_sync_replicas: Sequence[NodeId]
    log_start_offset: Offset
    high_watermark: Offset
    last_stable_offset: Offset
    log_end_offset: Offset
    size_bytes: int
    segments: int
    damaged_segments: int
    stats: PartitionStats


class CommittedSample(NamedTuple):
    """How far a group has come in a partition; the lag is None where the partition's end is not known yet."""

    topic: str
    partition: int
    offset: Offset
    lag: int | None


class GroupSample(NamedTuple):
    """One group, at the moment of a scrape."""

    group_id: str
    state: str
    members: int
    committed: Sequence[CommittedSample]


class TransactionsSample(NamedTuple):
    """The transactional ids of a node, at the moment of a scrape."""

    ids_by_state: Mapping[str, int]
    oldest_open_seconds: float


class PipelineSample(NamedTuple):
    """One query of Spark that reports to this node, at the moment of a scrape; None is what it has not reported."""

    pipeline: str
    running: bool
    batch: int | None
    batch_at_ms: int | None
    batch_ms: int | None
    rows_per_second: float | None
    watermark_ms: int | None
    late_rows: int
    state_rows: int | None


class LogDirectorySample(NamedTuple):
    """One log directory, at the moment of a scrape."""

    directory: str
    online: bool
    size_bytes: int
    free_bytes: int


class MetricsSource(Protocol):
    """What a scrape asks of a node. All of it is called on the node's loop and must not wait; partitions, groups and
    topics are gone through in several turns, between which the node changes."""

    @property
    def stats(self) -> NodeStats: ...

    @property
    def node_id(self) -> NodeId: ...

    @property
    def cluster_id(self) -> str: ...

    def brokers(self) -> Iterable[BrokerSample]: ...

    def topics(self) -> Iterable[tuple[str, int]]:
        """List each topic's name and its number of partitions."""

    def partitions(self) -> Iterable[PartitionSample]:
        """List the partitions that this node leads."""

    def groups(self) -> Iterable[GroupSample]:
        """List the groups that this node coordinates."""

    def transactions(self) -> TransactionsSample:
        """Count the transactional ids that this node coordinates."""

    def coordinators_loading(self) -> int:
        """Count the coordinators that are still reading their log."""

    def quorum(self) -> QuorumSample:
        """Return how this node keeps the metadata log."""

    def pipelines(self) -> Iterable[PipelineSample]:
        """List the queries of Spark that report to this node's checkpoint store."""

    def log_directories(self) -> Iterable[LogDirectorySample]: ...
