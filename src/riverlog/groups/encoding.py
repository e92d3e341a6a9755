"""Facts about groups as bytes: the key and the value of a record in `__consumer_offsets`.

    key:   kind int16 · fields        value: version int16 · fields, or null for what no longer holds

The fields are the wire's business. Bytes of a known kind that cannot be read raise BadRecord, with one sentence, and
nothing else; a kind that is not known is somebody else's, and passed over.
"""

from struct import Struct
from typing import Any, Final

from riverlog.groups.records import RECORD_TYPES, GroupRecord, Key, OffsetCommitKey, OffsetCommitValue, Value
from riverlog.model.ids import NO_PRODUCER, NO_PRODUCER_EPOCH, ProducerEpoch, ProducerId
from riverlog.model.ports import Buffer
from riverlog.wire.codec import MalformedMessage, decode, encode_parts, joined

VERSION_WITH_EXPIRY: Final = 1
"""The one version of an offset that says when it expires; written where a client demanded that."""

_TYPE_BY_NUMBER: Final = {kind.number: kind for kind in RECORD_TYPES}
_TYPE_BY_KEY: Final = {kind.key: kind for kind in RECORD_TYPES}
_TYPE_BY_VALUE: Final = {kind.value: kind for kind in RECORD_TYPES}
_OFFSET: Final = _TYPE_BY_KEY[OffsetCommitKey]
_GROUP_HEAD: Final = Struct(">hh")
_TEXT_HEAD: Final = Struct(">h")
_PARTITION: Final = Struct(">i")
_OFFSET_HEAD: Final = Struct(">hqiB")
_OFFSET_TAIL: Final = Struct(">qBBB16s")
_METADATA_BYTES_MAX: Final = 0x7E  # one byte more and the length takes two
_TEXT_BYTES_MAX: Final = 0x7FFF


class BadRecord(ValueError):
    """Bytes that claim to be a fact about a group and are none."""


def encode_key(key: Key) -> bytes:
    """Write a key behind the number of its kind."""
    if type(key) is OffsetCommitKey:
        return _offset_key(key)
    return _behind(_TYPE_BY_KEY[type(key)].number, key, 0)


def encode_value(value: Value) -> bytes:
    """Write a value behind its version."""
    if type(value) is OffsetCommitValue:
        return _offset_value(value)
    version = _TYPE_BY_VALUE[type(value)].version
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


def _offset_key(key: OffsetCommitKey) -> bytes:
    """Write the key of an offset without the wire, which takes three times as long: there is one for every commit."""
    group, topic = key.group.encode(), key.topic.encode()
    if len(group) > _TEXT_BYTES_MAX or len(topic) > _TEXT_BYTES_MAX:
        return _behind(_OFFSET.number, key, 0)
    head, between = _GROUP_HEAD.pack(_OFFSET.number, len(group)), _TEXT_HEAD.pack(len(topic))
    return b"".join((head, group, between, topic, _PARTITION.pack(key.partition)))


def _offset_value(value: OffsetCommitValue) -> bytes:
    """Write an offset, the ordinary one without the wire."""
    if value.expire_timestamp >= 0:
        return _behind(VERSION_WITH_EXPIRY, value, VERSION_WITH_EXPIRY)
    version, metadata = _OFFSET.version, value.metadata.encode()
    if not value.topic_id.int or len(metadata) > _METADATA_BYTES_MAX:
        return _behind(version, value, version)
    head = _OFFSET_HEAD.pack(version, value.offset, value.leader_epoch, len(metadata) + 1)
    return head + metadata + _OFFSET_TAIL.pack(value.commit_timestamp, 1, 0, 16, value.topic_id.bytes)


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
