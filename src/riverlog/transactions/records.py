"""The facts of `__transaction_state`: Kafka's own records, so that Kafka's tools can read the topic and a data folder
of Kafka's keeps its transactional ids.

A fact is a transactional id and what now holds for it, or None: it is forgotten. Kafka does not remember which epoch a
producer had before; riverlog does, in a tagged field that Kafka passes over, so that a request that is repeated after a
restart is still known to be one. What an id shares with members stands in another such field; each member has a record
of its own, under a kind of key that Kafka does not know and steps over.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from riverlog.model.ids import NO_PRODUCER_EPOCH, ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.transactions import ProducerIdentity, TransactionVersion
from riverlog.transactions.incarnations import BatchName, Incarnation, Shared
from riverlog.transactions.members import SharedMember, SharedMemberState
from riverlog.transactions.states import Transaction, TransactionState
from riverlog.wire.types import (
    INT32,
    NEVER,
    OWN_TAG,
    array,
    binary,
    boolean,
    int8,
    int16,
    int32,
    int64,
    nested,
    record,
    string,
    struct,
)

VALUE_VERSION: Final = 1
"""The version in which values are written, that of Kafka 4.3; 0 is understood."""
MEMBER_VERSION: Final = 0
"""The version in which values about members are written; they are ours alone."""


@record(flexible_since=NEVER)
class TransactionLogKey:
    """A transactional id."""

    transactional_id: str = string()


@struct
class PartitionsSchema:
    """Partitions of a topic that belong to a transaction."""

    topic: str = string()
    partition_ids: tuple[int, ...] = array(INT32, default_factory=tuple)


@struct
class IncarnationSchema:
    """How far an incarnation of a pipeline has come."""

    name: str = string(since=1)
    committed: int = int64(since=1)
    opened: int = int64(since=1)
    marker: bytes = binary(since=1)


@struct
class SharedSchema:
    """The batches of a transactional id that has members."""

    incarnations: tuple[IncarnationSchema, ...] = array(IncarnationSchema, since=1, default_factory=tuple)
    is_open: bool = boolean(since=1)


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
    shared: SharedSchema | None = nested(SharedSchema, since=1, tag=OWN_TAG + 1)


@record(flexible_since=0)
class MemberLogKey:
    """A producer of a transactional id's pool."""

    transactional_id: str = string()
    producer_id: int = int64()


@record(flexible_since=0)
class MemberLogValue:
    """What holds for it."""

    producer_epoch: int = int16()
    state: int = int8()
    incarnation: str = string()
    batch: int = int64()
    task: int = int32()
    attempt: int = int64()
    partitions: tuple[PartitionsSchema, ...] = array(PartitionsSchema, default_factory=tuple)


@dataclass(frozen=True, slots=True)
class TransactionFact:
    """One fact about a transactional id."""

    transactional_id: str
    transaction: Transaction | None


class MemberName(NamedTuple):
    """A producer of a transactional id's pool."""

    transactional_id: str
    producer_id: ProducerId


@dataclass(frozen=True, slots=True)
class MemberFact:
    """One fact about a member; None where its id has left the pool."""

    name: MemberName
    member: SharedMember | None


StateFact = TransactionFact | MemberFact


def value_of(transaction: Transaction) -> TransactionLogValue:
    """Encode it as Kafka's TransactionLogValue."""
    is_empty = transaction.state is TransactionState.EMPTY
    return TransactionLogValue(
        producer_id=transaction.producer.id,
        previous_producer_id=transaction.last.id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        # Apache Kafka stops reading the topic at a transaction without a list, unless it is Empty.
        transaction_partitions=None if is_empty else by_topic(transaction.partitions),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.version,
        last_producer_epoch=transaction.last.epoch,
        shared=None if transaction.shared is None else _schema_of(transaction.shared),
    )


def transaction_of(value: TransactionLogValue) -> Transaction:
    """Understand Kafka's words; ValueError for a state or version of rules that is not known."""
    return Transaction(
        producer=ProducerIdentity(ProducerId(value.producer_id), ProducerEpoch(value.producer_epoch)),
        timeout_ms=value.transaction_timeout_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        state=TransactionState(value.transaction_status),
        partitions=_partitions(value.transaction_partitions or ()),
        started_ms=value.transaction_start_timestamp_ms,
        version=TransactionVersion(value.client_transaction_version),
        last=ProducerIdentity(ProducerId(value.previous_producer_id), ProducerEpoch(value.last_producer_epoch)),
        next_producer_id=ProducerId(value.next_producer_id),
        shared=None if value.shared is None else _shared_of(value.shared),
    )


def member_value_of(member: SharedMember) -> MemberLogValue:
    """Encode it as a record of our own."""
    return MemberLogValue(
        producer_epoch=member.producer.epoch,
        state=member.state,
        incarnation=member.batch.incarnation,
        batch=member.batch.number,
        task=member.task,
        attempt=member.attempt,
        partitions=by_topic(member.partitions),
    )


def member_of(producer_id: ProducerId, value: MemberLogValue) -> SharedMember:
    """Understand them; ValueError for a state that is not known."""
    return SharedMember(
        producer=ProducerIdentity(producer_id, ProducerEpoch(value.producer_epoch)),
        batch=BatchName(value.incarnation, value.batch),
        task=value.task,
        attempt=value.attempt,
        state=SharedMemberState(value.state),
        partitions=_partitions(value.partitions),
    )


def _schema_of(shared: Shared) -> SharedSchema:
    return SharedSchema(
        tuple(IncarnationSchema(each.name, each.committed, each.opened, each.marker) for each in shared.incarnations),
        shared.is_open,
    )


def _shared_of(schema: SharedSchema) -> Shared:
    """ValueError where a batch is open and no incarnation has one."""
    if schema.is_open and not schema.incarnations:
        raise ValueError("a batch is open, and nobody's")
    incarnations = (
        Incarnation(each.name, each.committed, each.opened, bytes(each.marker)) for each in schema.incarnations
    )
    return Shared(tuple(incarnations), schema.is_open)


def by_topic(partitions: Iterable[TopicPartition]) -> tuple[PartitionsSchema, ...]:
    """Put partitions under their topics, all in order."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(partition)
    return tuple(PartitionsSchema(topic, tuple(ids)) for topic, ids in by_topic.items())


def _partitions(schemas: Iterable[PartitionsSchema]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(each.topic, index) for each in schemas for index in each.partition_ids)
