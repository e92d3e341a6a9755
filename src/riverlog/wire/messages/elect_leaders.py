"""ElectLeaders: give partitions back to their preferred leader, or to any replica that is left."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import INT32, array, int8, int16, int32, message, string, struct


@struct
class TopicPartitions:
    """A topic's partitions."""

    topic: str = string()
    partitions: list[int] = array(INT32)


@message(ApiKey.ELECT_LEADERS)
class ElectLeadersRequest:
    """Name the partitions, null meaning all; type 0 elects the preferred leader, 1 any replica."""

    election_type: int = int8(since=1)
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable_since=0)
    timeout_ms: int = int32(default=60000)


@struct
class PartitionResult:
    """Whether a leader was elected."""

    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)


@struct
class ReplicaElectionResult:
    """A topic's partitions."""

    topic: str = string()
    partition_result: list[PartitionResult] = array(PartitionResult)


@message(ApiKey.ELECT_LEADERS)
class ElectLeadersResponse:
    """The answer, partition by partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16(since=1)
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)
