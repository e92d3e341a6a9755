"""AssignReplicasToDirs: a broker tells the controller in which of its folders replicas lie (KIP-858)."""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import array, int16, int32, int64, message, struct, uuid


@struct
class AssignedPartition:
    """A partition in the folder."""

    partition_index: int = int32()


@struct
class AssignedTopic:
    """The partitions of one topic."""

    topic_id: UUID = uuid()
    partitions: list[AssignedPartition] = array(AssignedPartition)


@struct
class AssignedDirectory:
    """A folder, and what lies there."""

    id: UUID = uuid()
    topics: list[AssignedTopic] = array(AssignedTopic)


@message(ApiKey.ASSIGN_REPLICAS_TO_DIRS)
class AssignReplicasToDirsRequest:
    """Report what lies where."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    directories: list[AssignedDirectory] = array(AssignedDirectory)


@struct
class AssignedPartitionResult:
    """What became of one partition."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class AssignedTopicResult:
    """What became of one topic's partitions."""

    topic_id: UUID = uuid()
    partitions: list[AssignedPartitionResult] = array(AssignedPartitionResult)


@struct
class AssignedDirectoryResult:
    """What became of what lies in one folder."""

    id: UUID = uuid()
    topics: list[AssignedTopicResult] = array(AssignedTopicResult)


@message(ApiKey.ASSIGN_REPLICAS_TO_DIRS)
class AssignReplicasToDirsResponse:
    """The answer, partition by partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    directories: list[AssignedDirectoryResult] = array(AssignedDirectoryResult)
