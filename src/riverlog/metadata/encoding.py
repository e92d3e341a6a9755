"""Metadata records as bytes, in the form of Kafka's own metadata log.

    frame version varint (1) · record type varint · record version varint · fields · tagged fields

All record types are flexible in all versions: lengths and counts are varints of one more than the number, 0 is null,
and every struct ends with its tagged fields. Metadata is written rarely and read at start, so the declarations
are walked as they are. Bytes that are no record raise BadRecord, with one sentence, and nothing else.
"""

from struct import Struct as Layout
from typing import Any, Final
from uuid import UUID

from riverlog.metadata.records import RECORD_TYPES, MetadataRecord
from riverlog.wire.types import STRING, UUID_, Array, Field, Fixed, Struct, Type, Variable, fields_of

FRAME_VERSION: Final = 1
_VARINT_BITS_MAX: Final = 32


class BadRecord(ValueError):
    """Bytes that are no metadata record, or one that this version of riverlog does not know."""


def encode_record(record: MetadataRecord) -> bytes:
    """Write a record with its frame, in the version that its type is written in."""
    kind = _TYPE_BY_CLASS[type(record)]
    out = bytearray()
    for number in (FRAME_VERSION, kind.key, kind.version):
        _write_varint(out, number)
    _write_struct(out, record, kind.version)
    return bytes(out)


def decode_record(data: bytes) -> MetadataRecord:
    """Read a record with its frame; versions up to the one that is written are understood."""
    reader = _Reader(data)
    try:
        frame_version, key, version = reader.varint(), reader.varint(), reader.varint()
        kind = _TYPE_BY_KEY.get(key)
        if frame_version != FRAME_VERSION or kind is None or version > kind.version:
            raise BadRecord(
                f"frame version {frame_version}, type {key}, version {version} is not a metadata record that this "
                f"version of riverlog knows"
            )
        record: MetadataRecord = reader.struct(kind.declaration, version)
    except IndexError:
        raise BadRecord("a metadata record ends early") from None
    except UnicodeDecodeError:
        raise BadRecord("a text in a metadata record is not UTF-8") from None
    if reader.position != len(data):
        raise BadRecord(f"{len(data) - reader.position} bytes stand behind a metadata record")
    return record


_TYPE_BY_CLASS: Final = {kind.declaration: kind for kind in RECORD_TYPES}
_TYPE_BY_KEY: Final = {kind.key: kind for kind in RECORD_TYPES}
_LAYOUTS: Final = {code: Layout(">" + code) for code in "?bhHiqd"}


def _write_struct(out: bytearray, value: object, version: int) -> None:
    tagged: list[tuple[int, bytearray]] = []
    for field in _fields(type(value), version):
        content = getattr(value, field.name)
        if field.wire.tag is None:
            _write(out, field.type, content, version)
        elif content is not None and content != field.default:
            piece = bytearray()
            _write(piece, field.type, content, version)
            tagged.append((field.wire.tag, piece))
    _write_varint(out, len(tagged))
    for tag, piece in sorted(tagged):
        _write_varint(out, tag)
        _write_varint(out, len(piece))
        out += piece


def _write(out: bytearray, type_: Type, value: Any, version: int) -> None:
    match type_:
        case Fixed(code=code):
            out += value.bytes if type_ is UUID_ else _LAYOUTS[code].pack(value)
        case Variable():
            data = value.encode() if isinstance(value, str) else value
            _write_varint(out, 0 if data is None else len(data) + 1)
            out += data or b""
        case Array(element=element):
            _write_varint(out, 0 if value is None else len(value) + 1)
            for each in value or ():
                _write(out, element, each, version)
        case Struct():
            _write_struct(out, value, version)


def _write_varint(out: bytearray, number: int) -> None:
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


class _Reader:
    """Reads from the front of the bytes on; what runs past their end raises IndexError."""

    def __init__(self, data: bytes) -> None:
        self.position = 0
        self._data = data

    def varint(self) -> int:
        number = 0
        for shift in range(0, _VARINT_BITS_MAX, 7):
            byte = self._data[self.position]
            self.position += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
        raise BadRecord("a number in a metadata record is too long")

    def struct(self, declaration: type[Any], version: int) -> Any:
        fields = _fields(declaration, version)
        values = {field.name: self._field(field, version) for field in fields if field.wire.tag is None}
        by_tag = {field.wire.tag: field for field in fields if field.wire.tag is not None}
        for _ in range(self.varint()):
            tag, size = self.varint(), self.varint()
            end = self.position + size
            if tag in by_tag:
                values[by_tag[tag].name] = self._field(by_tag[tag], version)
            else:
                self._take(size)
            if self.position != end:
                raise BadRecord("a tagged field of a metadata record has another length than it says")
        return declaration(**values)

    def _field(self, field: Field, version: int) -> Any:
        value = self._value(field.type, version)
        if value is None and not field.wire.is_nullable_in(version):
            raise BadRecord(f"{field.name} is missing in a metadata record")
        return value

    def _value(self, type_: Type, version: int) -> Any:
        match type_:
            case Fixed(code=code, size=size):
                data = self._take(size)
                return UUID(bytes=data) if type_ is UUID_ else _LAYOUTS[code].unpack(data)[0]
            case Variable():
                size = self.varint() - 1
                if size < 0:
                    return None
                data = self._take(size)
                return data.decode() if type_ is STRING else data
            case Array(element=element):
                count = self.varint() - 1
                if count > len(self._data) - self.position:
                    raise IndexError
                return None if count < 0 else tuple(self._value(element, version) for _ in range(count))
            case Struct(declaration=declaration):
                return self.struct(declaration, version)

    def _take(self, size: int) -> bytes:
        end = self.position + size
        if end > len(self._data):
            raise IndexError
        data = self._data[self.position : end]
        self.position = end
        return data


def _fields(declaration: type[Any], version: int) -> tuple[Field, ...]:
    fields = _FIELDS.get((declaration, version))
    if fields is None:
        fields = tuple(field for field in fields_of(declaration) if field.wire.is_in(version))
        _FIELDS[declaration, version] = fields
    return fields


_FIELDS: Final[dict[tuple[type[Any], int], tuple[Field, ...]]] = {}
