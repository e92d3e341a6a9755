"""EndTransaction, riverlog's own: the owner of a batch commits what these members wrote, or aborts all of it."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import array, binary, boolean, int16, int32, int64, message, string, struct


@struct
class EndTransactionMember:
    """A member, as JoinTransaction named it."""

    producer_id: int = int64()
    producer_epoch: int = int16()


@struct
class EndTransactionPartition:
    """Where the group goes on in a partition."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(default=-1)
    committed_metadata: str | None = string(nullable_since=0)


@struct
class EndTransactionTopic:
    """A topic's partitions."""

    name: str = string()
    partitions: list[EndTransactionPartition] = array(EndTransactionPartition)


@message(ApiKey.END_TRANSACTION)
class EndTransactionRequest:
    """Name the batch and its end; members that are not listed are aborted either way.

    The offsets are committed for the group with the batch. The marker is kept with it, for whoever asks how far the
    incarnation has come.
    """

    transactional_id: str = string()
    owner_id: int = int64()
    owner_epoch: int = int16()
    incarnation: str = string()
    batch: int = int64()
    committed: bool = boolean()
    members: list[EndTransactionMember] = array(EndTransactionMember)
    group_id: str | None = string(nullable_since=0)
    topics: list[EndTransactionTopic] = array(EndTransactionTopic)
    marker: bytes = binary()


@message(ApiKey.END_TRANSACTION)
class EndTransactionResponse:
    """Whether it is decided as it was asked for."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
