"""JoinTransaction, riverlog's own: an attempt of a task becomes a member of a batch."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import int16, int32, int64, message, string


@message(ApiKey.JOIN_TRANSACTION)
class JoinTransactionRequest:
    """Name the batch, by the owner of its transactional id, and the attempt that wants to write in it."""

    transactional_id: str = string()
    owner_id: int = int64()
    owner_epoch: int = int16()
    incarnation: str = string()
    batch: int = int64()
    task: int = int32()
    attempt: int = int64()


@message(ApiKey.JOIN_TRANSACTION)
class JoinTransactionResponse:
    """The producer to write as; -1 without an error where the batch is committed already."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16(default=-1)
