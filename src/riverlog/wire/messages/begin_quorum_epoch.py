"""BeginQuorumEpoch: a new leader of the metadata log tells the voters that it leads (KIP-595, 853)."""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.endpoints import ListenerEndpoint, NodeEndpoint
from riverlog.wire.types import array, int16, int32, message, string, struct, uuid


@struct
class BeginEpochPartition:
    """Who leads, in which epoch; and the disk of the voter that it is meant for."""

    partition_index: int = int32()
    voter_directory_id: UUID = uuid(since=1)
    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class BeginEpochTopic:
    """The log that is led."""

    topic_name: str = string()
    partitions: list[BeginEpochPartition] = array(BeginEpochPartition)


@message(ApiKey.BEGIN_QUORUM_EPOCH)
class BeginQuorumEpochRequest:
    """Announce it to one voter, with all listeners of the leader."""

    cluster_id: str | None = string(nullable_since=0)
    voter_id: int = int32(since=1, default=-1)
    topics: list[BeginEpochTopic] = array(BeginEpochTopic)
    leader_endpoints: list[ListenerEndpoint] = array(ListenerEndpoint, since=1)


@struct
class BeginEpochPartitionResult:
    """The leader and the epoch that the voter knows."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class BeginEpochTopicResult:
    """What the voter says of one log."""

    topic_name: str = string()
    partitions: list[BeginEpochPartitionResult] = array(BeginEpochPartitionResult)


@message(ApiKey.BEGIN_QUORUM_EPOCH)
class BeginQuorumEpochResponse:
    """The answer, and where the leader listens."""

    error_code: int = int16()
    topics: list[BeginEpochTopicResult] = array(BeginEpochTopicResult)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=1, tag=0)
