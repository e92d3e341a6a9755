"""OffsetCommit: how far a group has come in each partition.

Topics go by name until version 9, by id from version 10 on.
"""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import array, int16, int32, int64, message, string, struct, uuid


@struct
class OffsetCommitRequestPartition:
    """The next offset to read, and words of the member's own."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(since=6, default=-1)
    committed_metadata: str | None = string(nullable_since=0)


@struct
class OffsetCommitRequestTopic:
    """A topic's partitions."""

    topic_id: UUID = uuid(since=10)
    name: str = string(until=9)
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)


@message(ApiKey.OFFSET_COMMIT)
class OffsetCommitRequest:
    """Ask to remember offsets; generation -1 and no member id come from outside the group."""

    group_id: str = string()
    generation_id_or_member_epoch: int = int32(default=-1)
    member_id: str = string()
    group_instance_id: str | None = string(since=7, nullable_since=7)
    retention_time_ms: int = int64(until=4, default=-1)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)


@struct
class OffsetCommitResponsePartition:
    """Whether the offset will be remembered."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class OffsetCommitResponseTopic:
    """A topic's partitions."""

    topic_id: UUID = uuid(since=10)
    name: str = string(until=9)
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


@message(ApiKey.OFFSET_COMMIT)
class OffsetCommitResponse:
    """The answer, partition by partition."""

    throttle_time_ms: int = int32(since=3)
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)
