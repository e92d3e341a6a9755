"""InitProducerId: an id and epoch for an idempotent or transactional producer."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import int16, int32, int64, message, string


@message(ApiKey.INIT_PRODUCER_ID)
class InitProducerIdRequest:
    """Ask for an id; one that is already held asks for its next epoch."""

    transactional_id: str | None = string(nullable_since=0)
    transaction_timeout_ms: int = int32()
    producer_id: int = int64(since=3, default=-1)
    producer_epoch: int = int16(since=3, default=-1)


@message(ApiKey.INIT_PRODUCER_ID)
class InitProducerIdResponse:
    """The id and the epoch to write with."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
