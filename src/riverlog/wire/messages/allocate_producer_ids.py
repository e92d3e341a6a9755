"""AllocateProducerIds: a broker asks the controller for a block of producer ids (KIP-730)."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import int16, int32, int64, message


@message(ApiKey.ALLOCATE_PRODUCER_IDS)
class AllocateProducerIdsRequest:
    """Name the broker."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


@message(ApiKey.ALLOCATE_PRODUCER_IDS)
class AllocateProducerIdsResponse:
    """The block: its first id, and how many there are."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id_start: int = int64()
    producer_id_len: int = int32()
