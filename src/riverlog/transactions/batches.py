"""Facts about transactions as record batches of `__transaction_state`: one batch per decision.

    key:   kind int16 · fields        value: version int16 · fields, or null for what is forgotten

Kind 0 is Kafka's, about a transactional id; 10,000 is ours, about a member of one.

Bytes that cannot be read raise BadRecord, with one sentence, and nothing else; a kind that is not known is passed over.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, assert_never

from riverlog.model.ids import ProducerId
from riverlog.model.ports import Buffer
from riverlog.records.batch import BatchHeader
from riverlog.records.record import BatchBuilder, Record
from riverlog.transactions.records import (
    MEMBER_VERSION,
    VALUE_VERSION,
    Fact,
    MemberFact,
    MemberLogKey,
    MemberLogValue,
    MemberName,
    TransactionFact,
    TransactionLogKey,
    TransactionLogValue,
    member_of,
    member_value_of,
    transaction_of,
    value_of,
)
from riverlog.wire.codec import MalformedMessage, decode, encode_parts, joined


class _Kind(IntEnum):
    """What a record is about."""

    TRANSACTION = 0
    MEMBER = 10_000


class BadRecord(ValueError):
    """Bytes that claim to be a fact about a transactional id and are none."""


def encode_facts(facts: Sequence[Fact], now_ms: int) -> bytearray:
    """Build the batch of one decision."""
    builder = BatchBuilder()
    for fact in facts:
        match fact:
            case TransactionFact():
                key = _behind(_Kind.TRANSACTION, TransactionLogKey(fact.transactional_id), 0)
                held = fact.transaction
                value = None if held is None else _behind(VALUE_VERSION, value_of(held), VALUE_VERSION)
            case MemberFact():
                key = _behind(_Kind.MEMBER, MemberLogKey(*fact.name), 0)
                member = fact.member
                value = None if member is None else _behind(MEMBER_VERSION, member_value_of(member), MEMBER_VERSION)
            case _:
                assert_never(fact)
        builder.append(key, value, timestamp_ms=now_ms)
    return builder.build()


def decode_facts(header: BatchHeader, records: Sequence[Record]) -> Iterator[Fact]:
    """Read the facts of a batch."""
    for record in records if not header.is_control else ():
        if (fact := decode_record(record.key or b"", record.value)) is not None:
            yield fact


def decode_record(key: Buffer, value: Buffer | None) -> Fact | None:
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
        raise BadRecord(f"in a record about a transactional id {error}") from None


def _member(key: Buffer, value: Buffer | None) -> MemberFact:
    decoded = _decoded(MemberLogKey, 0, key)
    name = MemberName(decoded.transactional_id, ProducerId(decoded.producer_id))
    if value is None:
        return MemberFact(name, None)
    version = _known_version(MemberLogValue, value, MEMBER_VERSION)
    try:
        return MemberFact(name, member_of(name.producer_id, _decoded(MemberLogValue, version, value)))
    except ValueError as error:
        raise BadRecord(f"in a record about a member {error}") from None


def _known_version(declaration: type[Any], value: Buffer, newest: int) -> int:
    version = _number(value)
    if not 0 <= version <= newest:
        raise BadRecord(f"version {version} of a {declaration.__name__} is not one that this version of riverlog knows")
    return version


def _behind(number: int, message: object, version: int) -> bytes:
    return joined(encode_parts(message, version, bytearray(number.to_bytes(2, "big"))))


def _number(data: Buffer) -> int:
    if len(data) < 2:
        raise BadRecord(f"a record about a transactional id begins with two bytes, and this has {len(data)}")
    return int.from_bytes(data[:2], "big", signed=True)


def _decoded(declaration: type[Any], version: int, data: Buffer) -> Any:
    try:
        message, position = decode(declaration, version, data, 2)
    except MalformedMessage as error:
        raise BadRecord(f"in a record about a transactional id {error}") from None
    if position != len(data):
        raise BadRecord(f"{len(data) - position} bytes stand behind a {declaration.__name__}")
    return message
