"""DescribeProducers: the producers that a partition remembers."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import INT32, array, int16, int32, int64, message, string, struct


@struct
class TopicRequest:
    """A topic's partitions."""

    name: str = string()
    partition_indexes: list[int] = array(INT32)


@message(ApiKey.DESCRIBE_PRODUCERS)
class DescribeProducersRequest:
    """Name the partitions."""

    topics: list[TopicRequest] = array(TopicRequest)


@struct
class ProducerState:
    """A producer and the last that it wrote."""

    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)
    last_timestamp: int = int64(default=-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=-1)


@struct
class PartitionResponse:
    """A partition's producers."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    active_producers: list[ProducerState] = array(ProducerState)


@struct
class TopicResponse:
    """A topic's partitions."""

    name: str = string()
    partitions: list[PartitionResponse] = array(PartitionResponse)


@message(ApiKey.DESCRIBE_PRODUCERS)
class DescribeProducersResponse:
    """The answer, partition by partition."""

    throttle_time_ms: int = int32()
    topics: list[TopicResponse] = array(TopicResponse)
