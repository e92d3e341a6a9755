"""OffsetFetch: how far groups have come.

One group per request until version 7, from version 8 on a list of them. Topics go by name until version 9, by id from
version 10 on; null asks for every partition that the group has committed.
"""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import INT32, array, boolean, int16, int32, int64, message, string, struct, uuid


@struct
class OffsetFetchRequestTopic:
    """A topic's partitions."""

    topic_id: UUID = uuid(since=10)
    name: str = string(until=9)
    partition_indexes: list[int] = array(INT32)


@struct
class OffsetFetchRequestGroup:
    """A group, and the partitions of interest; null asks for all."""

    group_id: str = string(since=8)
    member_id: str | None = string(since=9, nullable_since=9)
    member_epoch: int = int32(since=9, default=-1)
    topics: list[OffsetFetchRequestTopic] | None = array(OffsetFetchRequestTopic, since=8, nullable_since=8)


@message(ApiKey.OFFSET_FETCH)
class OffsetFetchRequest:
    """Ask for offsets, perhaps only for such as no open transaction may still change."""

    group_id: str = string(until=7)
    topics: list[OffsetFetchRequestTopic] | None = array(
        OffsetFetchRequestTopic, until=7, nullable_since=2, default_factory=list
    )
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, since=8)
    require_stable: bool = boolean(since=7)


@struct
class OffsetFetchResponsePartition:
    """The next offset to read; -1 where none was committed."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(since=5, default=-1)
    metadata: str | None = string(nullable_since=0)
    error_code: int = int16()


@struct
class OffsetFetchResponseTopic:
    """A topic's partitions."""

    topic_id: UUID = uuid(since=10)
    name: str = string(until=9)
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition)


@struct
class OffsetFetchResponseGroup:
    """One group's offsets."""

    group_id: str = string(since=8)
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, since=8)
    error_code: int = int16(since=8)


@message(ApiKey.OFFSET_FETCH)
class OffsetFetchResponse:
    """The offsets."""

    throttle_time_ms: int = int32(since=3)
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, until=7)
    error_code: int = int16(since=2, until=7)
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, since=8)
