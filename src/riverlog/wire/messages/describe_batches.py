"""DescribeBatches, riverlog's own: how far an incarnation of a pipeline has come."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import binary, int16, int32, int64, message, string


@message(ApiKey.DESCRIBE_BATCHES)
class DescribeBatchesRequest:
    """Name the transactional id and the incarnation."""

    transactional_id: str = string()
    incarnation: str = string()


@message(ApiKey.DESCRIBE_BATCHES)
class DescribeBatchesResponse:
    """The last committed batch with the marker that was left with it, and the one that is open; -1 where none is."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    committed_batch: int = int64(default=-1)
    open_batch: int = int64(default=-1)
    marker: bytes = binary()
