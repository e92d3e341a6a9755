"""WriteTxnMarkers: end transactions in partitions. Coordinators send it, and tools that abort what was left open."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import INT32, array, boolean, int8, int16, int32, int64, message, string, struct


@struct
class WritableTxnMarkerTopic:
    """A topic's partitions."""

    name: str = string()
    partition_indexes: list[int] = array(INT32)


@struct
class WritableTxnMarker:
    """How one producer's transaction ended; `transaction_version` 2 means that this brings a new producer epoch."""

    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = boolean()
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = int32()
    transaction_version: int = int8(since=2)


@message(ApiKey.WRITE_TXN_MARKERS)
class WriteTxnMarkersRequest:
    """Ask to write markers."""

    markers: list[WritableTxnMarker] = array(WritableTxnMarker)


@struct
class WritableTxnMarkerPartitionResult:
    """What became of one marker."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class WritableTxnMarkerTopicResult:
    """A topic's partitions."""

    name: str = string()
    partitions: list[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult)


@struct
class WritableTxnMarkerResult:
    """What became of one producer's markers."""

    producer_id: int = int64()
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult)


@message(ApiKey.WRITE_TXN_MARKERS)
class WriteTxnMarkersResponse:
    """The answer, producer by producer."""

    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)
