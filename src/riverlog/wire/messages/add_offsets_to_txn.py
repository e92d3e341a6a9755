"""AddOffsetsToTxn: let a transaction commit offsets of a group."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import int16, int32, int64, message, string


@message(ApiKey.ADD_OFFSETS_TO_TXN)
class AddOffsetsToTxnRequest:
    """Name the producer's transaction and the group."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


@message(ApiKey.ADD_OFFSETS_TO_TXN)
class AddOffsetsToTxnResponse:
    """Whether the group's offsets belong to the transaction now."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
