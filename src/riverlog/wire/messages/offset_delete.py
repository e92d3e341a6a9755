"""OffsetDelete: forget how far a group has come in some partitions."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import array, int16, int32, message, string, struct


@struct
class OffsetDeleteRequestPartition:
    """A partition."""

    partition_index: int = int32()


@struct
class OffsetDeleteRequestTopic:
    """A topic's partitions."""

    name: str = string()
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition)


@message(ApiKey.OFFSET_DELETE)
class OffsetDeleteRequest:
    """Name a group's partitions."""

    group_id: str = string()
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic)


@struct
class OffsetDeleteResponsePartition:
    """Whether the offset is gone."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class OffsetDeleteResponseTopic:
    """A topic's partitions."""

    name: str = string()
    partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition)


@message(ApiKey.OFFSET_DELETE)
class OffsetDeleteResponse:
    """The answer, partition by partition."""

    error_code: int = int16()
    throttle_time_ms: int = int32()
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic)
