"""DeleteRecords: move the start of partitions forward; what lies before it is gone."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import array, int16, int32, int64, message, string, struct


@struct
class DeleteRecordsPartition:
    """The new first offset of a partition; -1 takes the high watermark."""

    partition_index: int = int32()
    offset: int = int64()


@struct
class DeleteRecordsTopic:
    """The partitions of one topic."""

    name: str = string()
    partitions: list[DeleteRecordsPartition] = array(DeleteRecordsPartition)


@message(ApiKey.DELETE_RECORDS)
class DeleteRecordsRequest:
    """Ask to delete all records before an offset."""

    topics: list[DeleteRecordsTopic] = array(DeleteRecordsTopic)
    timeout_ms: int = int32()


@struct
class DeleteRecordsPartitionResult:
    """The partition's first offset over all its replicas."""

    partition_index: int = int32()
    low_watermark: int = int64()
    error_code: int = int16()


@struct
class DeleteRecordsTopicResult:
    """The partitions of one topic."""

    name: str = string()
    partitions: list[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult)


@message(ApiKey.DELETE_RECORDS)
class DeleteRecordsResponse:
    """The answer, partition by partition."""

    throttle_time_ms: int = int32()
    topics: list[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult)
