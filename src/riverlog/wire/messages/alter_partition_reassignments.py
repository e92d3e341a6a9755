"""AlterPartitionReassignments: move partitions to other brokers, or call a move off."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import INT32, array, boolean, int16, int32, message, string, struct


@struct
class ReassignablePartition:
    """Where a partition is to be; null calls its move off."""

    partition_index: int = int32()
    replicas: list[int] | None = array(INT32, nullable_since=0)


@struct
class ReassignableTopic:
    """A topic's partitions."""

    name: str = string()
    partitions: list[ReassignablePartition] = array(ReassignablePartition)


@message(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
class AlterPartitionReassignmentsRequest:
    """Name the partitions to move."""

    timeout_ms: int = int32(default=60000)
    allow_replication_factor_change: bool = boolean(since=1, default=True)
    topics: list[ReassignableTopic] = array(ReassignableTopic)


@struct
class ReassignablePartitionResponse:
    """Whether a partition will move."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)


@struct
class ReassignableTopicResponse:
    """A topic's partitions."""

    name: str = string()
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse)


@message(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
class AlterPartitionReassignmentsResponse:
    """The answer, partition by partition."""

    throttle_time_ms: int = int32()
    allow_replication_factor_change: bool = boolean(since=1, default=True)
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse)
