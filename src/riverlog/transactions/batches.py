"""Facts about transactions as record batches of `__transaction_state`: one batch per decision.

    key:   kind int16 = 0 · fields        value: version int16 · fields, or null for an id that is forgotten

Bytes that cannot be read raise BadRecord, with one sentence, and nothing else; a kind that is not known is passed over.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from riverlog.model.ports import Buffer
from riverlog.records.batch import BatchHeader
from riverlog.records.record import BatchBuilder, Record
from riverlog.transactions.records import (
    VALUE_VERSION,
    TransactionFact,
    TransactionLogKey,
    TransactionLogValue,
    transaction_of,
    value_of,
)
from riverlog.wire.codec import MalformedMessage, decode, encode_parts, joined

_KIND: Final = 0


class BadRecord(ValueError):
    """Bytes that claim to be a fact about a transactional id and are none."""


def encode_facts(facts: Sequence[TransactionFact], now_ms: int) -> bytearray:
    """Build the batch of one decision."""
    builder = BatchBuilder()
    for fact in facts:
        key = _behind(_KIND, TransactionLogKey(fact.transactional_id), 0)
        held = fact.transaction
        value = None if held is None else _behind(VALUE_VERSION, value_of(held), VALUE_VERSION)
        builder.append(key, value, timestamp_ms=now_ms)
    return builder.build()


def decode_facts(header: BatchHeader, records: Sequence[Record]) -> Iterator[TransactionFact]:
    """Read the facts of a batch."""
    for record in records if not header.is_control else ():
        if (fact := decode_record(record.key or b"", record.value)) is not None:
            yield fact


def decode_record(key: Buffer, value: Buffer | None) -> TransactionFact | None:
    """Read one record of the topic; None for a kind that riverlog does not know."""
    if _number(key) != _KIND:
        return None
    transactional_id = _decoded(TransactionLogKey, 0, key).transactional_id
    if value is None:
        return TransactionFact(transactional_id, None)
    version = _number(value)
    if not 0 <= version <= VALUE_VERSION:
        raise BadRecord(f"version {version} of a TransactionLogValue is not one that this version of riverlog knows")
    try:
        return TransactionFact(transactional_id, transaction_of(_decoded(TransactionLogValue, version, value)))
    except ValueError as error:
        raise BadRecord(f"in a record about a transactional id {error}") from None


def _behind(number: int, message: TransactionLogKey | TransactionLogValue, version: int) -> bytes:
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
