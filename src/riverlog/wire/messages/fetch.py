"""Fetch: read record batches, waiting a while if there are too few. Consumers and follower replicas both use it."""

from uuid import UUID

from riverlog.model.ports import Buffer, FileRange
from riverlog.wire.apis import ApiKey
from riverlog.wire.types import (
    INT32,
    array,
    batches,
    int8,
    int16,
    int32,
    int64,
    message,
    nested,
    string,
    struct,
    uuid,
)

HIGH_WATERMARK_UNKNOWN = 2**63 - 1


@struct
class ReplicaState:
    """Which follower asks, with the epoch of its registration."""

    replica_id: int = int32(since=15, default=-1)
    replica_epoch: int = int64(since=15, default=-1)


@struct
class FetchPartition:
    """Where to read on in one partition; the log start, the last epoch and the tagged fields are a follower's."""

    partition: int = int32()
    current_leader_epoch: int = int32(since=9, default=-1)
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32(since=12, default=-1)
    log_start_offset: int = int64(since=5, default=-1)
    partition_max_bytes: int = int32()
    replica_directory_id: UUID = uuid(since=17, tag=0)
    high_watermark: int = int64(since=18, tag=1, default=HIGH_WATERMARK_UNKNOWN)


@struct
class FetchTopic:
    """The partitions of one topic, by name or, from version 13, by id."""

    topic: str = string(until=12)
    topic_id: UUID = uuid(since=13)
    partitions: list[FetchPartition] = array(FetchPartition)


@struct
class ForgottenTopic:
    """Partitions to drop from a fetch session (KIP-227)."""

    topic: str = string(since=7, until=12)
    topic_id: UUID = uuid(since=13)
    partitions: list[int] = array(INT32, since=7)


@message(ApiKey.FETCH)
class FetchRequest:
    """Ask for records; a consumer has no `replica_state`, or -1 as `replica_id` in versions before 15."""

    cluster_id: str | None = string(since=12, nullable_since=12, tag=0)
    replica_id: int = int32(until=14, default=-1)
    replica_state: ReplicaState | None = nested(ReplicaState, since=15, tag=1)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(since=3, default=2**31 - 1)
    isolation_level: int = int8(since=4)
    session_id: int = int32(since=7)
    session_epoch: int = int32(since=7, default=-1)
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, since=7)
    rack_id: str = string(since=11)


@struct
class EpochEndOffset:
    """Where a follower's log parts from the leader's: the last common epoch and its end."""

    epoch: int = int32(since=12, default=-1)
    end_offset: int = int64(since=12, default=-1)


@struct
class LeaderIdAndEpoch:
    """Who leads the partition now, for a client that asked the wrong broker."""

    leader_id: int = int32(since=12, default=-1)
    leader_epoch: int = int32(since=12, default=-1)


@struct
class SnapshotId:
    """The snapshot to load, for a follower that asks for what the log no longer has."""

    end_offset: int = int64(since=12, default=-1)
    epoch: int = int32(since=12, default=-1)


@struct
class AbortedTransaction:
    """A producer whose records from `first_offset` to its next abort marker are not to be read."""

    producer_id: int = int64()
    first_offset: int = int64()


@struct
class PartitionData:
    """What was read of one partition. Consumers binary-search `aborted_transactions`: keep it sorted by offset."""

    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()
    last_stable_offset: int = int64(default=-1)
    log_start_offset: int = int64(since=5, default=-1)
    diverging_epoch: EpochEndOffset | None = nested(EpochEndOffset, since=12, tag=0)
    current_leader: LeaderIdAndEpoch | None = nested(LeaderIdAndEpoch, since=12, tag=1)
    snapshot_id: SnapshotId | None = nested(SnapshotId, since=12, tag=2)
    aborted_transactions: list[AbortedTransaction] | None = array(AbortedTransaction, nullable_since=4)
    preferred_read_replica: int = int32(since=11, default=-1)
    records: Buffer | FileRange | None = batches()


@struct
class FetchableTopicResponse:
    """The partitions of one topic, named as in the request."""

    topic: str = string(until=12)
    topic_id: UUID = uuid(since=13)
    partitions: list[PartitionData] = array(PartitionData)


@struct
class NodeEndpoint:
    """The address of a broker that leads a partition in this answer."""

    node_id: int = int32(since=16)
    host: str = string(since=16)
    port: int = int32(since=16)
    rack: str | None = string(since=16, nullable_since=16)


@message(ApiKey.FETCH)
class FetchResponse:
    """The answer, partition by partition; a session id of 0 tells the client that no session was opened."""

    throttle_time_ms: int = int32()
    error_code: int = int16(since=7)
    session_id: int = int32(since=7)
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=16, tag=0)
