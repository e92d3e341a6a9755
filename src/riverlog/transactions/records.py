"""The facts of `__transaction_state`: Kafka's own records, so that Kafka's tools can read the topic and a data folder
of Kafka's keeps its transactional ids.

A fact is a transactional id and what now holds for it, or None: it is forgotten. Kafka does not remember which epoch a
producer had before; riverlog does, in a tagged field that Kafka passes over, so that a request that is repeated after a
restart is still known to be one.
"""

from dataclasses import dataclass
from typing import Final

from riverlog.model.ids import NO_PRODUCER_EPOCH, ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.transactions import Producer, TransactionVersion
from riverlog.transactions.states import Transaction, TransactionState
from riverlog.wire.types import INT32, NEVER, OWN_TAG, array, int8, int16, int32, int64, record, string, struct

VALUE_VERSION: Final = 1
"""The version in which values are written, that of Kafka 4.3; 0 is understood."""


@record(flexible_since=NEVER)
class TransactionLogKey:
    """A transactional id."""

    transactional_id: str = string()


@struct
class PartitionsSchema:
    """Partitions of a topic that belong to a transaction."""

    topic: str = string()
    partition_ids: tuple[int, ...] = array(INT32, default_factory=tuple)


@record(flexible_since=1)
class TransactionLogValue:
    """What holds for a transactional id."""

    producer_id: int = int64()
    previous_producer_id: int = int64(since=1, tag=0, default=-1)
    next_producer_id: int = int64(since=1, tag=1, default=-1)
    producer_epoch: int = int16()
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    transaction_partitions: tuple[PartitionsSchema, ...] | None = array(PartitionsSchema, nullable_since=0)
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    client_transaction_version: int = int16(since=1, tag=2)
    last_producer_epoch: int = int16(since=1, tag=OWN_TAG, default=NO_PRODUCER_EPOCH)


@dataclass(frozen=True, slots=True)
class TransactionFact:
    """One fact."""

    transactional_id: str
    transaction: Transaction | None


def value_of(transaction: Transaction) -> TransactionLogValue:
    """Say it in Kafka's words."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        by_topic.setdefault(topic, []).append(partition)
    return TransactionLogValue(
        producer_id=transaction.producer.id,
        previous_producer_id=transaction.last.id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=tuple(PartitionsSchema(topic, tuple(ids)) for topic, ids in by_topic.items()) or None,
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.version,
        last_producer_epoch=transaction.last.epoch,
    )


def transaction_of(value: TransactionLogValue) -> Transaction:
    """Understand Kafka's words; ValueError for a state or version of rules that is not known."""
    return Transaction(
        producer=Producer(ProducerId(value.producer_id), ProducerEpoch(value.producer_epoch)),
        timeout_ms=value.transaction_timeout_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        state=TransactionState(value.transaction_status),
        partitions=frozenset(
            TopicPartition(each.topic, index)
            for each in value.transaction_partitions or ()
            for index in each.partition_ids
        ),
        started_ms=value.transaction_start_timestamp_ms,
        version=TransactionVersion(value.client_transaction_version),
        last=Producer(ProducerId(value.previous_producer_id), ProducerEpoch(value.last_producer_epoch)),
        next_producer_id=ProducerId(value.next_producer_id),
    )
