"""What an administrator sees of the quorum that keeps the metadata: who leads it, who votes, how far each has come."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from riverlog.client.errors import KafkaError, check
from riverlog.client.network.cluster import Cluster
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId, Offset
from riverlog.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartition,
    QuorumTopic,
    ReplicaState,
)

METADATA_TOPIC: Final = "__cluster_metadata"


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """A node that keeps the metadata log; times are -1 where they are unknown."""

    node_id: NodeId
    directory_id: UUID
    """That of its log directory; all zeros where it is unknown."""
    end_offset: Offset
    last_fetch_ms: int
    last_caught_up_ms: int


@dataclass(frozen=True, slots=True)
class QuorumDescription:
    """The quorum as its leader knows it."""

    leader: NodeId
    epoch: LeaderEpoch
    high_watermark: Offset
    """All records of the metadata below are committed."""
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]

    def lag(self, replica: QuorumReplica) -> int:
        """Return how many records a replica lacks of the leader's log."""
        end = max((each.end_offset for each in self.voters if each.node_id == self.leader), default=Offset(0))
        return max(0, end - replica.end_offset)


async def describe_quorum(cluster: Cluster) -> QuorumDescription:
    """Ask for the metadata's quorum; KafkaError where the cluster has none."""
    topics = [QuorumTopic(METADATA_TOPIC, [QuorumPartition(0)])]
    response: DescribeQuorumResponse = await cluster.ask_any(DescribeQuorumRequest(topics))
    check(response.error_code, "the quorum of the metadata", response.error_message)
    partition = next((each for topic in response.topics for each in topic.partitions), None)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the response says nothing of the quorum of the metadata")
    check(partition.error_code, "the quorum of the metadata", partition.error_message)
    return QuorumDescription(
        NodeId(partition.leader_id),
        LeaderEpoch(partition.leader_epoch),
        Offset(partition.high_watermark),
        tuple(map(_replica, partition.current_voters)),
        tuple(map(_replica, partition.observers)),
    )


def _replica(state: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        NodeId(state.replica_id),
        state.replica_directory_id,
        Offset(state.log_end_offset),
        state.last_fetch_timestamp,
        state.last_caught_up_timestamp,
    )
