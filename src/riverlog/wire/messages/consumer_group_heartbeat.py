"""ConsumerGroupHeartbeat: join, stay in and leave a group of the newer kind (KIP-848), and learn one's partitions.

A request says only what has changed since the last one: null and -1 mean that it has not.
"""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import INT32, STRING, array, int16, int32, message, nested, string, struct, uuid


@struct
class TopicPartitions:
    """A topic's partitions."""

    topic_id: UUID = uuid()
    partitions: list[int] = array(INT32)


@message(ApiKey.CONSUMER_GROUP_HEARTBEAT)
class ConsumerGroupHeartbeatRequest:
    """Report that a member is there, what it wants and what it has; epoch 0 joins, -1 leaves, -2 leaves for a while."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable_since=0)
    rack_id: str | None = string(nullable_since=0)
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: list[str] | None = array(STRING, nullable_since=0)
    subscribed_topic_regex: str | None = string(since=1, nullable_since=1)
    server_assignor: str | None = string(nullable_since=0)
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable_since=0)


@struct
class Assignment:
    """All partitions that the member should have."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


@message(ApiKey.CONSUMER_GROUP_HEARTBEAT)
class ConsumerGroupHeartbeatResponse:
    """The member's epoch, and its partitions if they have changed."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    member_id: str | None = string(nullable_since=0)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = nested(Assignment, nullable_since=0)
