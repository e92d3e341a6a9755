"""Facts about transactions as record batches of `__transaction_state`: one batch per decision.

    key:   kind int16 · fields        value: version int16 · fields, or null for what is forgotten

Kind 0 is Kafka's, about a transactional id; 10,000 is ours, about a member of one.

Bytes that cannot be read raise BadTransactionRecord, and nothing else; a kind that is not known is skipped.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from struct import Struct, pack
from typing import Any, Final, assert_never

from riverlog.model.ids import NO_PRODUCER, NO_PRODUCER_EPOCH, ProducerId, TopicPartition
from riverlog.model.ports import Buffer
from riverlog.records.batch import BatchHeader
from riverlog.records.record import BATCH_BYTES_MAX, BatchBuilder, Record, check_size
from riverlog.transactions.limits import TRANSACTION_END_BYTES_MAX, TRANSACTION_PARTITIONS_WRITTEN_MAX
from riverlog.transactions.members import SharedMember, SharedMemberState
from riverlog.transactions.records import (
    MEMBER_VERSION,
    VALUE_VERSION,
    MemberFact,
    MemberLogKey,
    MemberLogValue,
    MemberName,
    StateFact,
    TransactionFact,
    TransactionLogKey,
    TransactionLogValue,
    by_topic,
    member_of,
    member_value_of,
    transaction_of,
    value_of,
)
from riverlog.transactions.states import Transaction, TransactionState
from riverlog.wire.codec import MalformedMessage, decode, encode_parts, joined
from riverlog.wire.primitives import STRING_BYTES_MAX, varint_bytes
from riverlog.wire.types import OWN_TAG


class _Kind(IntEnum):
    """What a record is about."""

    TRANSACTION = 0
    MEMBER = 10_000


_KEY_HEAD: Final = Struct(">hh")
_VALUE_HEAD: Final = Struct(">hqhib")
_TIMES: Final = Struct(">qqB")
_ID_TAG: Final = Struct(">BBq")
_VERSION_TAG: Final = Struct(">BBh")
_EPOCH_TAG: Final = Struct(">2sBh")
_MEMBER_KEY_HEAD: Final = Struct(">hB")
_MEMBER_KEY_TAIL: Final = Struct(">qB")
_MEMBER_HEAD: Final = Struct(">hhbB")
_MEMBER_ATTEMPT: Final = Struct(">qiq")
_NULL: Final = b"\0"
_NO_TAGS: Final = b"\0"
_SHORT_BYTES_MAX: Final = 0x7E  # one byte more and the length takes two
_OWN_TAG_ON_WIRE: Final = varint_bytes(OWN_TAG)


class BadTransactionRecord(ValueError):
    """Bytes that claim to be a fact about a transactional id and are none."""


def encode_facts(facts: Sequence[StateFact], now_ms: int, bytes_max: int = BATCH_BYTES_MAX) -> bytearray:
    """Build the batch of one decision; Refusal where it would be too large. A transaction that goes on may be a little
    less large than one that ends: each that was begun can be ended."""
    if any(map(_goes_on, facts)):
        bytes_max -= TRANSACTION_END_BYTES_MAX
    builder = BatchBuilder()
    for fact in facts:
        match fact:
            case TransactionFact():
                key = _transaction_key(fact.transactional_id)
                value = None if fact.transaction is None else _transaction_value(fact.transaction)
            case MemberFact():
                key = _member_key(fact.name)
                value = None if fact.member is None else _member_value(fact.member)
            case _:
                assert_never(fact)
        builder.append(key, value, timestamp_ms=now_ms)
        check_size(builder, bytes_max)
    return builder.build()


def _goes_on(fact: StateFact) -> bool:
    match fact:
        case TransactionFact():
            return fact.transaction is not None and fact.transaction.state is TransactionState.ONGOING
        case MemberFact():
            return fact.member is not None and fact.member.state is SharedMemberState.JOINED
        case _:
            assert_never(fact)


def decode_facts(header: BatchHeader, records: Sequence[Record]) -> Iterator[StateFact]:
    """Read the facts of a batch."""
    for record in records if not header.is_control else ():
        if (fact := decode_record(record.key or b"", record.value)) is not None:
            yield fact


def decode_record(key: Buffer, value: Buffer | None) -> StateFact | None:
    """Read one record of the topic; None for a kind that riverlog does not know."""
    match _number(key):
        case _Kind.TRANSACTION:
            return _transaction(key, value)
        case _Kind.MEMBER:
            return _member(key, value)
        case _:
            return None


def _transaction(key: Buffer, value: Buffer | None) -> TransactionFact:
    transactional_id = _decoded(TransactionLogKey, 0, key).transactional_id
    if value is None:
        return TransactionFact(transactional_id, None)
    version = _known_version(TransactionLogValue, value, VALUE_VERSION)
    try:
        return TransactionFact(transactional_id, transaction_of(_decoded(TransactionLogValue, version, value)))
    except ValueError as error:
        raise BadTransactionRecord(f"in a record about a transactional id {error}") from None


def _member(key: Buffer, value: Buffer | None) -> MemberFact:
    decoded = _decoded(MemberLogKey, 0, key)
    name = MemberName(decoded.transactional_id, ProducerId(decoded.producer_id))
    if value is None:
        return MemberFact(name, None)
    version = _known_version(MemberLogValue, value, MEMBER_VERSION)
    try:
        return MemberFact(name, member_of(name.producer_id, _decoded(MemberLogValue, version, value)))
    except ValueError as error:
        raise BadTransactionRecord(f"in a record about a member {error}") from None


def _known_version(declaration: type[Any], value: Buffer, newest: int) -> int:
    version = _number(value)
    if not 0 <= version <= newest:
        raise BadTransactionRecord(
            f"version {version} of a {declaration.__name__} is not one that this version of riverlog knows"
        )
    return version


def _transaction_key(transactional_id: str) -> bytes:
    """Write an id without the wire's codec, as its value below: there are three of each in every transaction."""
    name = transactional_id.encode()
    if len(name) > STRING_BYTES_MAX:
        return _behind(_Kind.TRANSACTION, TransactionLogKey(transactional_id), 0)
    return _KEY_HEAD.pack(_Kind.TRANSACTION, len(name)) + name


def _transaction_value(held: Transaction) -> bytes:
    """Write what holds for an id; what it shares with members is left to the wire's codec."""
    if held.shared is not None:
        return _behind(VALUE_VERSION, value_of(held), VALUE_VERSION)
    producer, last = held.producer, held.last
    head = _VALUE_HEAD.pack(VALUE_VERSION, producer.id, producer.epoch, held.timeout_ms, held.state)
    tags: list[bytes] = []
    if last.id != NO_PRODUCER:
        tags.append(_ID_TAG.pack(0, 8, last.id))
    if held.next_producer_id != NO_PRODUCER:
        tags.append(_ID_TAG.pack(1, 8, held.next_producer_id))
    if held.version:
        tags.append(_VERSION_TAG.pack(2, 2, held.version))
    if last.epoch != NO_PRODUCER_EPOCH:
        tags.append(_EPOCH_TAG.pack(_OWN_TAG_ON_WIRE, 2, last.epoch))
    times = _TIMES.pack(held.updated_ms, held.started_ms, len(tags))
    partitions = _NULL if held.state is TransactionState.EMPTY else _partitions(held.partitions)
    return b"".join((head, partitions, times, *tags))


def _member_key(name: MemberName) -> bytes:
    """Write the name of a member, as its value below, without the codec: there are four of each for every member."""
    owner = name.transactional_id.encode()
    if len(owner) > _SHORT_BYTES_MAX:
        return _behind(_Kind.MEMBER, MemberLogKey(*name), 0)
    return _MEMBER_KEY_HEAD.pack(_Kind.MEMBER, len(owner) + 1) + owner + _MEMBER_KEY_TAIL.pack(name.producer_id, 0)


def _member_value(member: SharedMember) -> bytes:
    """Write what holds for a member."""
    incarnation = member.batch.incarnation.encode()
    if len(incarnation) > _SHORT_BYTES_MAX:
        return _behind(MEMBER_VERSION, member_value_of(member), MEMBER_VERSION)
    head = _MEMBER_HEAD.pack(MEMBER_VERSION, member.producer.epoch, member.state, len(incarnation) + 1)
    attempt = _MEMBER_ATTEMPT.pack(member.batch.number, member.task, member.attempt)
    return b"".join((head, incarnation, attempt, _partitions(member.partitions), _NO_TAGS))


@lru_cache(maxsize=TRANSACTION_PARTITIONS_WRITTEN_MAX)
def _partitions(partitions: frozenset[TopicPartition]) -> bytes:
    """Write the partitions of a transaction; the next one mostly has the same."""
    topics = by_topic(partitions)
    written = [varint_bytes(len(topics) + 1)]
    for topic in topics:
        name, ids = topic.topic.encode(), topic.partition_ids
        written += (
            varint_bytes(len(name) + 1),
            name,
            varint_bytes(len(ids) + 1),
            pack(f">{len(ids)}i", *ids),
            _NO_TAGS,
        )
    return b"".join(written)


def _behind(number: int, message: object, version: int) -> bytes:
    return joined(encode_parts(message, version, bytearray(number.to_bytes(2, "big"))))


def _number(data: Buffer) -> int:
    if len(data) < 2:
        raise BadTransactionRecord(f"a record about a transactional id begins with two bytes, and this has {len(data)}")
    return int.from_bytes(data[:2], "big", signed=True)


def _decoded(declaration: type[Any], version: int, data: Buffer) -> Any:
    try:
        message, position = decode(declaration, version, data, 2)
    except MalformedMessage as error:
        raise BadTransactionRecord(f"in a record about a transactional id {error}") from None
    if position != len(data):
        raise BadTransactionRecord(f"{len(data) - position} bytes stand behind a {declaration.__name__}")
    return message
