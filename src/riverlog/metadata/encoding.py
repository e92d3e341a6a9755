"""Metadata records as bytes, in the form of Kafka's own metadata log.

    frame version varint (1) · record type varint · record version varint · fields · tagged fields

All record types are flexible in all versions: lengths and counts are varints of one more than the number, 0 is null,
and every struct ends with its tagged fields. A node reads all its metadata when it starts, so reading follows a plan
that is made once per type and version. Bytes that are no record raise BadRecord, with one sentence, and nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from struct import Struct as Layout
from struct import error as BadLayout  # noqa: N812  (an exception by its meaning here)
from struct import unpack_from
from typing import Any, Final

from riverlog.metadata.records import RECORD_TYPES, MetadataRecord
from riverlog.wire.primitives import MalformedMessage, uuid_of, varint, varint_bytes
from riverlog.wire.types import STRING, UUID_, Array, Field, Fixed, Struct, Type, Variable, fields_of

FRAME_VERSION: Final = 1

Reader = Callable[[bytes, int], tuple[Any, int]]
"""Reads a value at a position; gives it and the position behind it. Past the end it raises IndexError or BadLayout."""


class BadRecord(ValueError):
    """Bytes that are no metadata record, or one that this version of riverlog does not know."""


def encode_record(record: MetadataRecord) -> bytes:
    """Write a record with its frame, in the version that its type is written in."""
    kind = _TYPE_BY_CLASS[type(record)]
    out = bytearray()
    for number in (FRAME_VERSION, kind.key, kind.version):
        out += varint_bytes(number)
    _write_struct(out, record, kind.version)
    return bytes(out)


def decode_record(data: bytes) -> MetadataRecord:
    """Read a record with its frame; versions up to the one that is written are understood."""
    try:
        frame_version, position = varint(data, 0)
        key, position = varint(data, position)
        version, position = varint(data, position)
        kind = _TYPE_BY_KEY.get(key)
        if frame_version != FRAME_VERSION or kind is None or version > kind.version:
            raise BadRecord(
                f"frame version {frame_version}, type {key}, version {version} is not a metadata record that this "
                f"version of riverlog knows"
            )
        record: MetadataRecord
        record, position = _plan(kind.declaration, version).read(data, position)
    except (IndexError, BadLayout):
        raise BadRecord("a metadata record ends early") from None
    except UnicodeDecodeError:
        raise BadRecord("a text in a metadata record is not UTF-8") from None
    except MalformedMessage as error:
        raise BadRecord(f"in a metadata record {error}") from None
    if position != len(data):
        raise BadRecord(f"{len(data) - position} bytes stand behind a metadata record")
    return record


_TYPE_BY_CLASS: Final = {kind.declaration: kind for kind in RECORD_TYPES}
_TYPE_BY_KEY: Final = {kind.key: kind for kind in RECORD_TYPES}


# Writing


def _write_struct(out: bytearray, value: object, version: int) -> None:
    plan = _plan(type(value), version)
    for each in plan.fields:
        _write(out, each.type, getattr(value, each.name), version)
    tagged: list[tuple[int, bytearray]] = []
    for tag, each in plan.tagged.items():
        content = getattr(value, each.name)
        if content is not None and content != each.default:
            piece = bytearray()
            _write(piece, each.type, content, version)
            tagged.append((tag, piece))
    out += varint_bytes(len(tagged))
    for tag, piece in sorted(tagged):
        out += varint_bytes(tag) + varint_bytes(len(piece)) + piece


def _write(out: bytearray, type_: Type, value: Any, version: int) -> None:
    match type_:
        case Fixed(code=code):
            out += value.bytes if type_ is UUID_ else _LAYOUTS[code].pack(value)
        case Variable():
            data = value.encode() if isinstance(value, str) else value
            out += varint_bytes(0 if data is None else len(data) + 1)
            out += data or b""
        case Array(element=element):
            out += varint_bytes(0 if value is None else len(value) + 1)
            for each in value or ():
                _write(out, element, each, version)
        case Struct():
            _write_struct(out, value, version)


_LAYOUTS: Final = {code: Layout(">" + code) for code in "?bhHiqd"}


# Reading


@dataclass(slots=True)
class _Plan:
    """How one version of a struct is read: step by step, neighbours of fixed size in one step."""

    declaration: type[Any]
    fields: list[Field] = field(default_factory=list)
    tagged: dict[int, Field] = field(default_factory=dict)
    steps: list[tuple[tuple[str, ...], Reader]] = field(default_factory=list)
    readers_by_tag: dict[int, Reader] = field(default_factory=dict)

    def read(self, data: bytes, position: int) -> tuple[Any, int]:
        values: dict[str, Any] = {}
        for names, reader in self.steps:
            several, position = reader(data, position)
            values.update(zip(names, several, strict=True))
        count, position = varint(data, position)
        for _ in range(count):
            tag, position = varint(data, position)
            size, position = varint(data, position)
            end = position + size
            if tag in self.tagged:
                values[self.tagged[tag].name], position = self.readers_by_tag[tag](data, position)
            elif end <= len(data):
                position = end
            if position != end:
                raise BadRecord("a tagged field of a metadata record has another length than it says")
        return self.declaration(**values), position


_PLANS: Final[dict[tuple[type[Any], int], _Plan]] = {}


def _plan(declaration: type[Any], version: int) -> _Plan:
    plan = _PLANS.get((declaration, version))
    if plan is None:
        plan = _PLANS[declaration, version] = _made_plan(declaration, version)
    return plan


def _made_plan(declaration: type[Any], version: int) -> _Plan:
    plan = _Plan(declaration)
    run: list[Field] = []
    for each in fields_of(declaration):
        if not each.wire.is_in(version):
            continue
        if each.wire.tag is not None:
            plan.tagged[each.wire.tag] = each
            plan.readers_by_tag[each.wire.tag] = _reader(each, version)
            continue
        plan.fields.append(each)
        if isinstance(each.type, Fixed):
            run.append(each)
            continue
        _end_run(plan, run)
        plan.steps.append(((each.name,), _single(_reader(each, version))))
    _end_run(plan, run)
    return plan


def _end_run(plan: _Plan, run: list[Field]) -> None:
    if run:
        types = [each.type for each in run]
        plan.steps.append((tuple(each.name for each in run), _fixed_reader(types)))
        run.clear()


def _single(reader: Reader) -> Reader:
    def read(data: bytes, position: int) -> tuple[Any, int]:
        value, position = reader(data, position)
        return (value,), position

    return read


def _fixed_reader(types: list[Type]) -> Reader:
    layout = Layout(">" + "".join(each.code for each in types if isinstance(each, Fixed)))
    uuids = [slot for slot, each in enumerate(types) if each is UUID_]

    def read(data: bytes, position: int) -> tuple[Any, int]:
        values = list(layout.unpack_from(data, position))
        for slot in uuids:
            values[slot] = uuid_of(values[slot])
        return values, position + layout.size

    return read


def _reader(each: Field, version: int) -> Reader:
    """Make the reader of one field, which refuses null where it may not be."""
    read = _reader_of(each.type, version)
    if each.wire.is_nullable_in(version) or isinstance(each.type, Fixed | Struct):
        return read

    def read_something(data: bytes, position: int) -> tuple[Any, int]:
        value, position = read(data, position)
        if value is None:
            raise BadRecord(f"{each.name} is missing in a metadata record")
        return value, position

    return read_something


def _reader_of(type_: Type, version: int) -> Reader:
    match type_:
        case Fixed():
            several = _fixed_reader([type_])

            def read_fixed(data: bytes, position: int) -> tuple[Any, int]:
                values, position = several(data, position)
                return values[0], position

            return read_fixed
        case Variable():
            return _text_reader if type_ is STRING else _bytes_reader
        case Array(element=element):
            return _numbers_reader(element) if isinstance(element, Fixed) else _array_reader(element, version)
        case Struct(declaration=declaration):
            return _plan(declaration, version).read


def _bytes_reader(data: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = varint(data, position)
    end = position + size - 1
    if end > len(data):
        raise IndexError
    return (None, position) if size == 0 else (data[position:end], end)


def _text_reader(data: bytes, position: int) -> tuple[str | None, int]:
    value, position = _bytes_reader(data, position)
    return None if value is None else value.decode(), position


def _numbers_reader(element: Fixed) -> Reader:
    code, size, is_uuid = element.code, element.size, element is UUID_

    def read(data: bytes, position: int) -> tuple[Any, int]:
        count, position = varint(data, position)
        if count == 0:
            return None, position
        count -= 1
        end = position + count * size
        if end > len(data):
            raise IndexError
        values = unpack_from(">" + code * count, data, position)
        return tuple(uuid_of(each) for each in values) if is_uuid else values, end

    return read


def _array_reader(element: Type, version: int) -> Reader:
    one = _reader_of(element, version)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        count, position = varint(data, position)
        if count == 0:
            return None, position
        if count - 1 > len(data) - position:
            raise IndexError
        values = []
        for _ in range(count - 1):
            value, position = one(data, position)
            values.append(value)
        return tuple(values), position

    return read
