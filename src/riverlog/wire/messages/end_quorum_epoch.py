"""EndQuorumEpoch: the leader of the metadata log resigns, and says who may follow it (KIP-595, 853)."""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.endpoints import ListenerEndpoint, NodeEndpoint
from riverlog.wire.types import INT32, array, int16, int32, message, string, struct, uuid


@struct
class EpochCandidate:
    """A voter that may stand for election; the first one at once."""

    candidate_id: int = int32()
    candidate_directory_id: UUID = uuid()


@struct
class EndEpochPartition:
    """Who resigns, from which epoch, and who may follow: the longest log first."""

    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32()
    preferred_successors: list[int] = array(INT32, until=0)
    preferred_candidates: list[EpochCandidate] = array(EpochCandidate, since=1)


@struct
class EndEpochTopic:
    """The log that was led."""

    topic_name: str = string()
    partitions: list[EndEpochPartition] = array(EndEpochPartition)


@message(ApiKey.END_QUORUM_EPOCH)
class EndQuorumEpochRequest:
    """Announce it to one voter."""

    cluster_id: str | None = string(nullable_since=0)
    topics: list[EndEpochTopic] = array(EndEpochTopic)
    leader_endpoints: list[ListenerEndpoint] = array(ListenerEndpoint, since=1)


@struct
class EndEpochPartitionResult:
    """The leader and the epoch that the voter knows."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class EndEpochTopicResult:
    """What the voter says of one log."""

    topic_name: str = string()
    partitions: list[EndEpochPartitionResult] = array(EndEpochPartitionResult)


@message(ApiKey.END_QUORUM_EPOCH)
class EndQuorumEpochResponse:
    """The answer, and where the leader listens."""

    error_code: int = int16()
    topics: list[EndEpochTopicResult] = array(EndEpochTopicResult)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=1, tag=0)
