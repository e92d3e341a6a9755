"""DescribeTopicPartitions: topics and their partitions, page by page (KIP-966)."""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.metadata import OPERATIONS_NOT_ASKED_FOR
from riverlog.wire.types import INT32, array, boolean, int16, int32, message, nested, string, struct, uuid


@struct
class TopicRequest:
    """A topic asked for."""

    name: str = string()


@struct
class Cursor:
    """The place where a page starts."""

    topic_name: str = string()
    partition_index: int = int32()


@message(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
class DescribeTopicPartitionsRequest:
    """Ask for a page; no topics means all, no cursor the first page."""

    topics: list[TopicRequest] = array(TopicRequest)
    response_partition_limit: int = int32(default=2000)
    cursor: Cursor | None = nested(Cursor, nullable_since=0)


@struct
class DescribeTopicPartitionsResponsePartition:
    """A partition, its leader and replicas, and who else could lead without loss."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(default=-1)
    replica_nodes: list[int] = array(INT32)
    isr_nodes: list[int] = array(INT32)
    eligible_leader_replicas: list[int] | None = array(INT32, nullable_since=0)
    last_known_elr: list[int] | None = array(INT32, nullable_since=0)
    offline_replicas: list[int] = array(INT32)


@struct
class DescribeTopicPartitionsResponseTopic:
    """A topic, or the part of it that is on this page."""

    error_code: int = int16()
    name: str | None = string(nullable_since=0)
    topic_id: UUID = uuid()
    is_internal: bool = boolean()
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(DescribeTopicPartitionsResponsePartition)
    topic_authorized_operations: int = int32(default=OPERATIONS_NOT_ASKED_FOR)


@message(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
class DescribeTopicPartitionsResponse:
    """A page, and where the next one starts if there is one."""

    throttle_time_ms: int = int32()
    topics: list[DescribeTopicPartitionsResponseTopic] = array(DescribeTopicPartitionsResponseTopic)
    next_cursor: Cursor | None = nested(Cursor, nullable_since=0)
