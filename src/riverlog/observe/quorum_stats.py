"""What a node's share in the quorum counts about itself, and how a scrape sees it."""

from typing import NamedTuple

from riverlog.model.ids import LeaderEpoch, NodeId, Offset
from riverlog.observe.stats import Histogram


class QuorumStats:
    """How long elections and commits take, and how long records wait before they are written."""

    __slots__ = ("commits", "elections", "queue")

    def __init__(self) -> None:
        self.commits = Histogram()
        self.elections = Histogram()
        self.queue = Histogram()


class ControllerSample(NamedTuple):
    """What the active controller knows of the cluster, at the moment of a scrape."""

    active_brokers: int
    fenced_brokers: int
    offline_partitions: int | None
    """None where nobody counts: a node that is alone leads everything that can be led."""
    unpreferred_partitions: int | None


class QuorumSample(NamedTuple):
    """The metadata log and who keeps it, as one node sees it at the moment of a scrape."""

    leader_id: NodeId
    """-1 while nobody is known to lead; so for the vote."""
    epoch: LeaderEpoch
    voted_id: NodeId
    state: str
    voters: int
    high_watermark: Offset
    log_end_offset: Offset
    applied_offset: Offset
    snapshot_age_seconds: float
    snapshot_bytes: int
    stats: QuorumStats
    controller: ControllerSample | None
    """None where this node does not decide."""
