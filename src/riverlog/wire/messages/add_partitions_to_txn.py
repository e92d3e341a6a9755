"""AddPartitionsToTxn: take partitions into a transaction, or ask whether they belong to it.

One transaction per request until version 3, which clients send; from version 4 on a list of them, which brokers send.
"""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import INT32, array, boolean, int16, int32, int64, message, string, struct


@struct
class AddPartitionsToTxnTopic:
    """A topic's partitions."""

    name: str = string()
    partitions: list[int] = array(INT32)


@struct
class AddPartitionsToTxnTransaction:
    """One producer's transaction; `verify_only` asks and adds nothing."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    verify_only: bool = boolean()
    topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic)


@message(ApiKey.ADD_PARTITIONS_TO_TXN)
class AddPartitionsToTxnRequest:
    """The partitions of one transaction, or of each."""

    transactions: list[AddPartitionsToTxnTransaction] = array(AddPartitionsToTxnTransaction, since=4)
    v3_and_below_transactional_id: str = string(until=3)
    v3_and_below_producer_id: int = int64(until=3)
    v3_and_below_producer_epoch: int = int16(until=3)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, until=3)


@struct
class AddPartitionsToTxnPartitionResult:
    """Whether the partition belongs to the transaction now."""

    partition_index: int = int32()
    partition_error_code: int = int16()


@struct
class AddPartitionsToTxnTopicResult:
    """A topic's partitions."""

    name: str = string()
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = array(AddPartitionsToTxnPartitionResult)


@struct
class AddPartitionsToTxnResult:
    """One transaction's partitions."""

    transactional_id: str = string()
    topic_results: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult)


@message(ApiKey.ADD_PARTITIONS_TO_TXN)
class AddPartitionsToTxnResponse:
    """The answer, partition by partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16(since=4)
    results_by_transaction: list[AddPartitionsToTxnResult] = array(AddPartitionsToTxnResult, since=4)
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult, until=3)
