"""Produce: append record batches to partitions.

Versions below 3 carry record formats that are no longer written; they are advertised and refused.
"""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import array, batches, int16, int32, int64, message, nested, string, struct, uuid


@struct
class PartitionProduceData:
    """The batches for one partition. On decode `records` is a view into the frame, writable where the frame is."""

    index: int = int32()
    records: memoryview | None = batches()


@struct
class TopicProduceData:
    """The partitions of one topic, by name or, from version 13, by id."""

    name: str = string(until=12)
    topic_id: UUID = uuid(since=13)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


@message(ApiKey.PRODUCE)
class ProduceRequest:
    """Ask to append; `acks` 0 wants no answer, 1 the leader's, -1 that of all in-sync replicas."""

    transactional_id: str | None = string(since=3, nullable_since=3)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicProduceData] = array(TopicProduceData)


@struct
class BatchIndexAndErrorMessage:
    """A record at which its batch was refused, counted from the start of the batch."""

    batch_index: int = int32(since=8)
    batch_index_error_message: str | None = string(since=8, nullable_since=8)


@struct
class LeaderIdAndEpoch:
    """Who leads the partition now, for a client that asked the wrong broker."""

    leader_id: int = int32(since=10, default=-1)
    leader_epoch: int = int32(since=10, default=-1)


@struct
class PartitionProduceResponse:
    """What became of one partition's batches; `log_append_time_ms` is -1 where the topic keeps the sender's time."""

    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64(since=2, default=-1)
    log_start_offset: int = int64(since=5, default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = array(BatchIndexAndErrorMessage, since=8)
    error_message: str | None = string(since=8, nullable_since=8)
    current_leader: LeaderIdAndEpoch | None = nested(LeaderIdAndEpoch, since=10, tag=0)


@struct
class TopicProduceResponse:
    """The partitions of one topic, named as in the request."""

    name: str = string(until=12)
    topic_id: UUID = uuid(since=13)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


@struct
class NodeEndpoint:
    """The address of a broker that leads a partition in this answer."""

    node_id: int = int32(since=10)
    host: str = string(since=10)
    port: int = int32(since=10)
    rack: str | None = string(since=10, nullable_since=10)


@message(ApiKey.PRODUCE)
class ProduceResponse:
    """The answer, partition by partition."""

    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32(since=1)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=10, tag=0)
