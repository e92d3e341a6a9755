"""AlterPartition: the leader of partitions asks the controller to change their in-sync replicas (KIP-497, 841, 903)."""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import INT32, array, int8, int16, int32, int64, message, struct, uuid


@struct
class InSyncReplica:
    """A replica, and the registration of its broker that the leader has heard from."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


@struct
class AlterPartitionPartition:
    """The in-sync replicas that a leader wants, and on which state of the partition that rests."""

    partition_index: int = int32()
    leader_epoch: int = int32()
    new_isr: list[int] = array(INT32, until=2)
    new_isr_with_epochs: list[InSyncReplica] = array(InSyncReplica, since=3)
    leader_recovery_state: int = int8()
    partition_epoch: int = int32()


@struct
class AlterPartitionTopic:
    """The partitions of one topic."""

    topic_id: UUID = uuid()
    partitions: list[AlterPartitionPartition] = array(AlterPartitionPartition)


@message(ApiKey.ALTER_PARTITION)
class AlterPartitionRequest:
    """Ask for all partitions of a broker at once."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[AlterPartitionTopic] = array(AlterPartitionTopic)


@struct
class AlterPartitionPartitionResult:
    """What the partition is like now."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(INT32)
    leader_recovery_state: int = int8()
    partition_epoch: int = int32()


@struct
class AlterPartitionTopicResult:
    """The partitions of one topic."""

    topic_id: UUID = uuid()
    partitions: list[AlterPartitionPartitionResult] = array(AlterPartitionPartitionResult)


@message(ApiKey.ALTER_PARTITION)
class AlterPartitionResponse:
    """The answer, partition by partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[AlterPartitionTopicResult] = array(AlterPartitionTopicResult)
