"""What is known about a transactional id, in Kafka's words and back."""

import pytest

from riverlog.model.ids import ProducerId
from riverlog.transactions.records import TransactionLogValue, transaction_of, value_of
from riverlog.transactions.states import Transaction, TransactionState
from tests.support.transactions import P0, P1, V2, producer_of

OPEN = Transaction(producer_of(7, 3), timeout_ms=1_000, updated_ms=5).joined([P1, P0], V2, 10)


@pytest.mark.parametrize(
    "transaction",
    [
        Transaction(producer_of(7, 3), timeout_ms=1_000, updated_ms=5),
        OPEN,
        OPEN.ended(committed=True, version=V2, now_ms=20),
        OPEN.ended(committed=False, version=V2, now_ms=20).completed(30),
        Transaction(producer_of(7, 32_766), 1, 2, TransactionState.ONGOING, frozenset([P0])).ended(
            committed=True, version=V2, now_ms=20, new_id=ProducerId(9)
        ),
    ],
)
def test_every_transaction_comes_back(transaction: Transaction) -> None:
    assert transaction_of(value_of(transaction)) == transaction


def test_partitions_stand_under_their_topic_in_order() -> None:
    partitions = value_of(OPEN).transaction_partitions
    assert partitions is not None
    assert [(each.topic, each.partition_ids) for each in partitions] == [("t", (0, 1))]


def test_kafka_reads_null_as_no_partitions_of_an_empty_transaction_alone() -> None:
    assert value_of(Transaction(producer_of(7, 3), 1, 2)).transaction_partitions is None
    ended = OPEN.ended(committed=True, version=V2, now_ms=20).completed(30)
    assert value_of(ended).transaction_partitions == ()


def test_a_state_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ValueError, match="8 is not a valid TransactionState"):
        transaction_of(TransactionLogValue(transaction_status=8))
