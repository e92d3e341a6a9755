"""ListTransactions: the transactional ids that a broker looks after."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import INT32, INT64, OWN_TAG, STRING, array, int16, int32, int64, message, string, struct


@message(ApiKey.LIST_TRANSACTIONS)
class ListTransactionsRequest:
    """Ask for all of them, or for those that match."""

    state_filters: list[str] = array(STRING)
    producer_id_filters: list[int] = array(INT64)
    duration_filter: int = int64(since=1, default=-1)
    transactional_id_pattern: str | None = string(since=2, nullable_since=2)


@struct
class TransactionState:
    """A transactional id."""

    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


@message(ApiKey.LIST_TRANSACTIONS)
class ListTransactionsResponse:
    """Those that match, and the states in the request that do not exist."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array(STRING)
    transaction_states: list[TransactionState] = array(TransactionState)
    damaged_partitions: list[int] = array(INT32, tag=OWN_TAG)  # ours: of the coordinators that could not be asked
