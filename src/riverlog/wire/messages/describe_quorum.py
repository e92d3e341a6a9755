"""DescribeQuorum: who votes on the cluster's metadata, who leads, and how far each has come."""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import array, int16, int32, int64, message, string, struct, uint16, uuid


@struct
class QuorumPartition:
    """A partition of a log that is voted on."""

    partition_index: int = int32()


@struct
class QuorumTopic:
    """A topic's partitions."""

    topic_name: str = string()
    partitions: list[QuorumPartition] = array(QuorumPartition)


@message(ApiKey.DESCRIBE_QUORUM)
class DescribeQuorumRequest:
    """Name the log."""

    topics: list[QuorumTopic] = array(QuorumTopic)


@struct
class ReplicaState:
    """How far a voter or observer has come."""

    replica_id: int = int32()
    replica_directory_id: UUID = uuid(since=2)
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64(since=1, default=-1)
    last_caught_up_timestamp: int = int64(since=1, default=-1)


@struct
class PartitionData:
    """The leader, and all who follow."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(since=2, nullable_since=2)
    leader_id: int = int32()
    leader_epoch: int = int32()
    high_watermark: int = int64()
    current_voters: list[ReplicaState] = array(ReplicaState)
    observers: list[ReplicaState] = array(ReplicaState)


@struct
class TopicData:
    """A topic's partitions."""

    topic_name: str = string()
    partitions: list[PartitionData] = array(PartitionData)


@struct
class Listener:
    """An address of a voter."""

    name: str = string(since=2)
    host: str = string(since=2)
    port: int = uint16(since=2)


@struct
class Node:
    """A voter and its addresses."""

    node_id: int = int32(since=2)
    listeners: list[Listener] = array(Listener, since=2)


@message(ApiKey.DESCRIBE_QUORUM)
class DescribeQuorumResponse:
    """The quorum."""

    error_code: int = int16()
    error_message: str | None = string(since=2, nullable_since=2)
    topics: list[TopicData] = array(TopicData)
    nodes: list[Node] = array(Node, since=2)
