"""ListOffsets: the offset at a time, or at either end of a partition.

Negative timestamps are questions of their own; from version 7, 8, 9 and 11 on clients may ask the later ones.
"""

from enum import IntEnum

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import array, int8, int16, int32, int64, message, string, struct


class SpecialTimestamp(IntEnum):
    """A timestamp that asks for a place rather than a time."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


@struct
class ListOffsetsPartition:
    """A partition and the time asked for."""

    partition_index: int = int32()
    current_leader_epoch: int = int32(since=4, default=-1)
    timestamp: int = int64()


@struct
class ListOffsetsTopic:
    """The partitions of one topic."""

    name: str = string()
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


@message(ApiKey.LIST_OFFSETS)
class ListOffsetsRequest:
    """Ask for offsets; with isolation level 1 the latest is the last stable offset."""

    replica_id: int = int32(default=-1)
    isolation_level: int = int8(since=2)
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = int32(since=10)


@struct
class ListOffsetsPartitionResponse:
    """The first offset at or after the time asked for, with its own timestamp; -1 where there is none."""

    partition_index: int = int32()
    error_code: int = int16()
    timestamp: int = int64(default=-1)
    offset: int = int64(default=-1)
    leader_epoch: int = int32(since=4, default=-1)


@struct
class ListOffsetsTopicResponse:
    """The partitions of one topic."""

    name: str = string()
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


@message(ApiKey.LIST_OFFSETS)
class ListOffsetsResponse:
    """The answer, partition by partition."""

    throttle_time_ms: int = int32(since=2)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)
