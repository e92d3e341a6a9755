"""DescribeTransactions: transactional ids, and what each of them is doing."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import INT32, STRING, array, int16, int32, int64, message, string, struct


@message(ApiKey.DESCRIBE_TRANSACTIONS)
class DescribeTransactionsRequest:
    """Name the transactional ids."""

    transactional_ids: list[str] = array(STRING)


@struct
class TopicData:
    """A topic's partitions."""

    topic: str = string()
    partitions: list[int] = array(INT32)


@struct
class TransactionState:
    """A transactional id."""

    error_code: int = int16()
    transactional_id: str = string()
    transaction_state: str = string()
    transaction_timeout_ms: int = int32()
    transaction_start_time_ms: int = int64()
    producer_id: int = int64()
    producer_epoch: int = int16()
    topics: list[TopicData] = array(TopicData)


@message(ApiKey.DESCRIBE_TRANSACTIONS)
class DescribeTransactionsResponse:
    """The answer, id by id."""

    throttle_time_ms: int = int32()
    transaction_states: list[TransactionState] = array(TransactionState)
