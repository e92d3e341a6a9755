"""ConsumerGroupDescribe: groups of the newer kind (KIP-848) with their members."""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.metadata import OPERATIONS_NOT_ASKED_FOR
from riverlog.wire.types import INT32, STRING, array, boolean, int8, int16, int32, message, nested, string, struct, uuid


@message(ApiKey.CONSUMER_GROUP_DESCRIBE)
class ConsumerGroupDescribeRequest:
    """Name the groups."""

    group_ids: list[str] = array(STRING)
    include_authorized_operations: bool = boolean()


@struct
class TopicPartitions:
    """A topic's partitions."""

    topic_id: UUID = uuid()
    topic_name: str = string()
    partitions: list[int] = array(INT32)


@struct
class Assignment:
    """The partitions of a member."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


@struct
class Member:
    """A member: what it wants, what it has, and what it is to have."""

    member_id: str = string()
    instance_id: str | None = string(nullable_since=0)
    rack_id: str | None = string(nullable_since=0)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(STRING)
    subscribed_topic_regex: str | None = string(nullable_since=0)
    assignment: Assignment = nested(Assignment)
    target_assignment: Assignment = nested(Assignment)
    member_type: int = int8(since=1, default=-1)


@struct
class DescribedGroup:
    """A group."""

    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[Member] = array(Member)
    authorized_operations: int = int32(default=OPERATIONS_NOT_ASKED_FOR)


@message(ApiKey.CONSUMER_GROUP_DESCRIBE)
class ConsumerGroupDescribeResponse:
    """The answer, group by group."""

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
