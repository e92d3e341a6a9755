"""ListPartitionReassignments: the partitions that are on the move."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import INT32, array, int16, int32, message, string, struct


@struct
class ListPartitionReassignmentsTopics:
    """A topic's partitions."""

    name: str = string()
    partition_indexes: list[int] = array(INT32)


@message(ApiKey.LIST_PARTITION_REASSIGNMENTS)
class ListPartitionReassignmentsRequest:
    """Name the partitions of interest; null asks for all."""

    timeout_ms: int = int32(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = array(ListPartitionReassignmentsTopics, nullable_since=0)


@struct
class OngoingPartitionReassignment:
    """A partition on the move."""

    partition_index: int = int32()
    replicas: list[int] = array(INT32)
    adding_replicas: list[int] = array(INT32)
    removing_replicas: list[int] = array(INT32)


@struct
class OngoingTopicReassignment:
    """A topic's partitions."""

    name: str = string()
    partitions: list[OngoingPartitionReassignment] = array(OngoingPartitionReassignment)


@message(ApiKey.LIST_PARTITION_REASSIGNMENTS)
class ListPartitionReassignmentsResponse:
    """The moves under way."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    topics: list[OngoingTopicReassignment] = array(OngoingTopicReassignment)
