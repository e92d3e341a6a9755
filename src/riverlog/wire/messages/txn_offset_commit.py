"""TxnOffsetCommit: how far a group has come, if the transaction is committed."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import OWN_TAG, array, boolean, int16, int32, int64, message, string, struct


@struct
class TxnOffsetCommitRequestPartition:
    """The next offset to read, and words of the member's own."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(since=2, default=-1)
    committed_metadata: str | None = string(nullable_since=0)


@struct
class TxnOffsetCommitRequestTopic:
    """A topic's partitions."""

    name: str = string()
    partitions: list[TxnOffsetCommitRequestPartition] = array(TxnOffsetCommitRequestPartition)


@message(ApiKey.TXN_OFFSET_COMMIT)
class TxnOffsetCommitRequest:
    """Ask to remember offsets once the producer's transaction is committed."""

    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id: int = int32(since=3, default=-1)
    member_id: str = string(since=3)
    group_instance_id: str | None = string(since=3, nullable_since=3)
    topics: list[TxnOffsetCommitRequestTopic] = array(TxnOffsetCommitRequestTopic)
    needs_empty_group: bool = boolean(since=3, tag=OWN_TAG)  # ours: nobody else may read in the group


@struct
class TxnOffsetCommitResponsePartition:
    """Whether the offset will be remembered."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class TxnOffsetCommitResponseTopic:
    """A topic's partitions."""

    name: str = string()
    partitions: list[TxnOffsetCommitResponsePartition] = array(TxnOffsetCommitResponsePartition)


@message(ApiKey.TXN_OFFSET_COMMIT)
class TxnOffsetCommitResponse:
    """The answer, partition by partition."""

    throttle_time_ms: int = int32()
    topics: list[TxnOffsetCommitResponseTopic] = array(TxnOffsetCommitResponseTopic)
