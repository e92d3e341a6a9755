"""FetchSnapshot: read bytes of a snapshot of the metadata log, for a replica whose records the log has let go of."""

from uuid import UUID

from riverlog.model.ports import Buffer, FileRange
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.endpoints import NodeEndpoint
from riverlog.wire.types import array, int16, int32, int64, message, nested, part_of_batches, string, struct, uuid


@struct
class SnapshotName:
    """All records below an offset, the last of them written in this epoch."""

    end_offset: int = int64()
    epoch: int = int32()


@struct
class FetchSnapshotPartition:
    """Which snapshot, and from which byte on."""

    partition: int = int32()
    current_leader_epoch: int = int32()
    snapshot_id: SnapshotName = nested(SnapshotName)
    position: int = int64()
    replica_directory_id: UUID = uuid(since=1, tag=0)


@struct
class FetchSnapshotTopic:
    """The log."""

    name: str = string()
    partitions: list[FetchSnapshotPartition] = array(FetchSnapshotPartition)


@message(ApiKey.FETCH_SNAPSHOT)
class FetchSnapshotRequest:
    """Ask the leader."""

    cluster_id: str | None = string(nullable_since=0, tag=0)
    replica_id: int = int32(default=-1)
    max_bytes: int = int32(default=2**31 - 1)
    topics: list[FetchSnapshotTopic] = array(FetchSnapshotTopic)


@struct
class SnapshotLeader:
    """Who leads the log now."""

    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class FetchSnapshotPartitionResult:
    """Bytes of the snapshot; they may end in the midst of a batch."""

    index: int = int32()
    error_code: int = int16()
    snapshot_id: SnapshotName = nested(SnapshotName)
    current_leader: SnapshotLeader | None = nested(SnapshotLeader, tag=0)
    size: int = int64()
    position: int = int64()
    unaligned_records: Buffer | FileRange = part_of_batches()


@struct
class FetchSnapshotTopicResult:
    """What was read of one log's snapshots."""

    name: str = string()
    partitions: list[FetchSnapshotPartitionResult] = array(FetchSnapshotPartitionResult)


@message(ApiKey.FETCH_SNAPSHOT)
class FetchSnapshotResponse:
    """The answer, and where the leader listens."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[FetchSnapshotTopicResult] = array(FetchSnapshotTopicResult)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=1, tag=0)
