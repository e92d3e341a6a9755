"""DescribeLogDirs: which partitions lie in which folder of a broker, and how large they are."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import INT32, OWN_TAG, STRING, array, boolean, int16, int32, int64, message, string, struct


@struct
class DescribableLogDirTopic:
    """The partitions of one topic."""

    topic: str = string()
    partitions: list[int] = array(INT32)


@message(ApiKey.DESCRIBE_LOG_DIRS)
class DescribeLogDirsRequest:
    """Ask for some topics, or null for all."""

    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable_since=0)


@struct
class DescribeLogDirsPartition:
    """A partition's size, and how far it lags behind where it is being moved."""

    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64()
    is_future_key: bool = boolean()


@struct
class DescribeLogDirsTopic:
    """The partitions of one topic."""

    name: str = string()
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


@struct
class DescribeLogDirsResult:
    """One folder, with the size of its volume; -1 where that is unknown."""

    error_code: int = int16()
    log_dir: str = string()
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = int64(since=4, default=-1)
    usable_bytes: int = int64(since=4, default=-1)
    is_cordoned: bool = boolean(since=5)
    damaged: list[str] = array(STRING, since=2, tag=OWN_TAG)  # ours: some of its partitions with damage, by name


@message(ApiKey.DESCRIBE_LOG_DIRS)
class DescribeLogDirsResponse:
    """The answer, folder by folder."""

    throttle_time_ms: int = int32()
    error_code: int = int16(since=3)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)
