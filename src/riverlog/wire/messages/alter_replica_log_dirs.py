"""AlterReplicaLogDirs: move partitions to another folder of their broker."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import INT32, array, int16, int32, message, string, struct


@struct
class AlterReplicaLogDirTopic:
    """The partitions of one topic."""

    name: str = string()
    partitions: list[int] = array(INT32)


@struct
class AlterReplicaLogDir:
    """A folder, and what is to lie there."""

    path: str = string()
    topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic)


@message(ApiKey.ALTER_REPLICA_LOG_DIRS)
class AlterReplicaLogDirsRequest:
    """Ask for what is to lie where."""

    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir)


@struct
class AlterReplicaLogDirPartitionResult:
    """What became of one partition."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class AlterReplicaLogDirTopicResult:
    """What became of one topic's partitions."""

    topic_name: str = string()
    partitions: list[AlterReplicaLogDirPartitionResult] = array(AlterReplicaLogDirPartitionResult)


@message(ApiKey.ALTER_REPLICA_LOG_DIRS)
class AlterReplicaLogDirsResponse:
    """The answer, partition by partition."""

    throttle_time_ms: int = int32()
    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult)
