"""Facts about groups as bytes: the key and the value of a record in `__consumer_offsets`.

    key:   kind int16 · fields        value: version int16 · fields, or null for what no longer holds

The fields are the wire's business. Bytes of a known kind that cannot be read raise BadRecord, with one sentence, and
nothing else; a kind that is not known is somebody else's, and passed over.
"""

from typing import Any, Final

from riverlog.groups.records import RECORD_TYPES, GroupRecord, Key, OffsetCommitValue, Value
from riverlog.model.ids import NO_PRODUCER, NO_PRODUCER_EPOCH, ProducerEpoch, ProducerId
from riverlog.model.ports import Buffer
from riverlog.wire.codec import MalformedMessage, decode, encode_parts, joined

VERSION_WITH_EXPIRY: Final = 1
"""The one version of an offset that says when it expires; written where a client demanded that."""

_TYPE_BY_NUMBER: Final = {kind.number: kind for kind in RECORD_TYPES}
_TYPE_BY_KEY: Final = {kind.key: kind for kind in RECORD_TYPES}
_TYPE_BY_VALUE: Final = {kind.value: kind for kind in RECORD_TYPES}


class BadRecord(ValueError):
    """Bytes that claim to be a fact about a group and are none."""


def encode_key(key: Key) -> bytes:
    """Write a key behind the number of its kind."""
    return _behind(_TYPE_BY_KEY[type(key)].number, key, 0)


def encode_value(value: Value) -> bytes:
    """Write a value behind its version."""
    version = _TYPE_BY_VALUE[type(value)].version
    if isinstance(value, OffsetCommitValue) and value.expire_timestamp >= 0:
        version = VERSION_WITH_EXPIRY
    return _behind(version, value, version)


def decode_record(
    key: Buffer,
    value: Buffer | None,
    producer_id: ProducerId = NO_PRODUCER,
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH,
) -> GroupRecord | None:
    """Read one record of the topic; None for a kind that riverlog does not know."""
    kind = _TYPE_BY_NUMBER.get(_number(key))
    if kind is None:
        return None
    decoded_key = _decoded(kind.key, 0, key)
    if value is None:
        return GroupRecord(decoded_key, None, producer_id, producer_epoch)
    version = _number(value)
    if not 0 <= version <= kind.latest:
        raise BadRecord(f"{kind.value.__name__} version {version} is not one that this version of riverlog knows")
    return GroupRecord(decoded_key, _decoded(kind.value, version, value), producer_id, producer_epoch)


def _behind(number: int, message: Key | Value, version: int) -> bytes:
    return joined(encode_parts(message, version, bytearray(number.to_bytes(2, "big"))))


def _number(data: Buffer) -> int:
    if len(data) < 2:
        raise BadRecord(f"a record about a group begins with two bytes, and this has {len(data)}")
    return int.from_bytes(data[:2], "big", signed=True)


def _decoded(declaration: type[Any], version: int, data: Buffer) -> Any:
    try:
        message, position = decode(declaration, version, data, 2)
    except MalformedMessage as error:
        raise BadRecord(f"in a record about a group {error}") from None
    if position != len(data):
        raise BadRecord(f"{len(data) - position} bytes stand behind a {declaration.__name__}")
    return message
