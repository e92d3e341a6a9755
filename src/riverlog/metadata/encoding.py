"""Metadata records as bytes, in the form of Kafka's own metadata log.

    frame version varint (1) · record type varint · record version varint · fields

The fields are the wire's business. Bytes that are no record raise BadMetadataRecord, and nothing else.
"""

from typing import Any, Final

from riverlog.metadata.records import RECORD_TYPES, MetadataRecord, RecordType, TransactionRecord
from riverlog.wire.codec import MalformedMessage, decode, encode_parts, joined
from riverlog.wire.primitives import varint, varint_bytes

FRAME_VERSION: Final = 1

_TYPE_BY_CLASS: Final = {kind.declaration: kind for kind in RECORD_TYPES}
_TYPE_BY_KEY: Final = {kind.key: kind for kind in RECORD_TYPES}
_ACCESS_KEYS: Final = frozenset({10, 11, 14, 18, 19, 22, 26})


class BadMetadataRecord(ValueError):
    """Bytes that are no metadata record, or one that this version of riverlog does not know."""


def encode_record(record: MetadataRecord | TransactionRecord) -> bytes:
    """Write a record with its frame, in the version that its type is written in."""
    kind = _TYPE_BY_CLASS.get(type(record)) or _access_types()[type(record)]
    frame = bytearray()
    for number in (FRAME_VERSION, kind.key, kind.version):
        frame += varint_bytes(number)
    return joined(encode_parts(record, kind.version, frame))


def decode_record(data: bytes) -> MetadataRecord | TransactionRecord:
    """Read a record with its frame; versions up to the one that is written are understood."""
    try:
        frame_version, position = varint(data, 0)
        key, position = varint(data, position)
        version, position = varint(data, position)
        if key in _ACCESS_KEYS and key not in _TYPE_BY_KEY:
            _access_types()
        kind = _TYPE_BY_KEY.get(key)
        if frame_version != FRAME_VERSION or kind is None or version > kind.version:
            raise BadMetadataRecord(
                f"frame version {frame_version}, type {key}, version {version} is not a metadata record that this "
                f"version of riverlog knows"
            )
        record: MetadataRecord | TransactionRecord
        record, position = decode(kind.declaration, version, data, position)
    except IndexError:
        raise BadMetadataRecord("a metadata record ends early") from None
    except MalformedMessage as error:
        raise BadMetadataRecord(f"in a metadata record {error}") from None
    if position != len(data):
        raise BadMetadataRecord(f"{len(data) - position} bytes stand behind a metadata record")
    return record


def _access_types() -> dict[type[Any], RecordType]:
    """Learn the types of records about access: most logs have none of them."""
    from riverlog.metadata.access_records import ACCESS_RECORD_TYPES

    _TYPE_BY_KEY.update((kind.key, kind) for kind in ACCESS_RECORD_TYPES)
    _TYPE_BY_CLASS.update((kind.declaration, kind) for kind in ACCESS_RECORD_TYPES)
    return _TYPE_BY_CLASS
