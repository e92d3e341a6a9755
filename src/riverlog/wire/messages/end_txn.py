"""EndTxn: commit or abort a transaction."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import boolean, int16, int32, int64, message, string


@message(ApiKey.END_TXN)
class EndTxnRequest:
    """Name the producer's transaction, and what is to become of it."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


@message(ApiKey.END_TXN)
class EndTxnResponse:
    """Whether it is decided; from version 5 on with the producer's id and epoch for the next transaction."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(since=5, default=-1)
    producer_epoch: int = int16(since=5, default=-1)
