"""How a message is declared: one dataclass for all versions of it.

A field names its type on the wire and the versions that have it:

    @struct
    class Topic:
        name: str = string(until=12)
        topic_id: UUID = uuid(since=13)
        partitions: list[int] = array(INT32)

    @message(ApiKey.FETCH)
    class FetchRequest:
        topics: list[Topic] = array(Topic)

The field functions return dataclass fields with the declaration as metadata; to a type checker they are plain
defaults, so every field may be left out when a message is built. A field that can be null starts out as None. Fields
stand in wire order, tagged ones anywhere. The codec reads declarations through `fields_of`, never annotations.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar, dataclass_transform
from uuid import UUID

from riverlog.wire.apis import API_BY_KEY, ApiKey

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value of fixed size, by its code in the struct module."""

    code: str
    size: int


@dataclass(frozen=True, slots=True)
class Variable:
    """Bytes behind their length; `length_code` is that length's type where it is not compact."""

    name: str
    length_code: str


@dataclass(frozen=True, slots=True)
class Struct:
    """A nested dataclass, declared with `@struct`."""

    declaration: type[Any]


@dataclass(frozen=True, slots=True)
class Array:
    """A counted sequence of one type; Kafka has no arrays of arrays."""

    element: "Fixed | Variable | Struct"


Type = Fixed | Variable | Struct | Array

BOOLEAN: Final = Fixed("?", 1)
INT8: Final = Fixed("b", 1)
INT16: Final = Fixed("h", 2)
UINT16: Final = Fixed("H", 2)
INT32: Final = Fixed("i", 4)
INT64: Final = Fixed("q", 8)
FLOAT64: Final = Fixed("d", 8)
UUID_: Final = Fixed("16s", 16)
STRING: Final = Variable("string", "h")
BYTES: Final = Variable("bytes", "i")
RECORDS: Final = Variable("records", "i")

OWN_TAG: Final = 10_000
"""Tagged fields from here on are riverlog's own, written only for clients that know them; Kafka counts from 0."""

NO_UUID: Final = UUID(int=0)

NEVER: Final = 1 << 15
"""No version reaches this: an int16 carries it."""


@dataclass(frozen=True, slots=True)
class FieldType:
    """What the wire knows about a field: its type and the versions that have it, may leave it null, or tag it."""

    type: Type
    since: int
    until: int
    nullable_since: int
    tag: int | None

    def is_in(self, version: int) -> bool:
        return self.since <= version <= self.until

    def is_nullable_in(self, version: int) -> bool:
        return version >= self.nullable_since


@dataclass(frozen=True, slots=True)
class Field:
    """A field as the codec sees it."""

    name: str
    wire: FieldType
    default: Any

    @property
    def type(self) -> Type:
        return self.wire.type


_METADATA_KEY: Final = "wire"


def _fixed(type_: Fixed, *, since: int = 0, until: int = NEVER, tag: int | None = None, default: object = 0) -> Any:
    return _field(type_, since, until, NEVER, tag, default)


boolean = partial(_fixed, BOOLEAN, default=False)
int8 = partial(_fixed, INT8)
int16 = partial(_fixed, INT16)
uint16 = partial(_fixed, UINT16)
int32 = partial(_fixed, INT32)
int64 = partial(_fixed, INT64)
float64 = partial(_fixed, FLOAT64, default=0.0)
uuid = partial(_fixed, UUID_, default=NO_UUID)


def _variable(
    type_: Variable,
    empty: str | bytes | None,
    *,
    since: int = 0,
    until: int = NEVER,
    nullable_since: int = NEVER,
    tag: int | None = None,
) -> Any:
    return _field(type_, since, until, nullable_since, tag, empty if nullable_since == NEVER else None)


string = partial(_variable, STRING, "")
binary = partial(_variable, BYTES, b"")
batches = partial(_variable, RECORDS, None, nullable_since=0)
part_of_batches = partial(_variable, RECORDS, b"")


def array(
    element: Fixed | Variable | type[Any],
    *,
    since: int = 0,
    until: int = NEVER,
    nullable_since: int = NEVER,
    tag: int | None = None,
    default_factory: Callable[[], Any] | None = None,
) -> Any:
    """Declare a sequence of structs or plain values."""
    inner = Struct(element) if isinstance(element, type) else element
    wire = FieldType(Array(inner), since, until, nullable_since, tag)
    if default_factory is None and nullable_since == NEVER:
        default_factory = list
    if default_factory is None:
        return dataclasses.field(default=None, metadata={_METADATA_KEY: wire})
    return dataclasses.field(default_factory=default_factory, metadata={_METADATA_KEY: wire})


def nested(
    declaration: type[Any], *, since: int = 0, until: int = NEVER, nullable_since: int = NEVER, tag: int | None = None
) -> Any:
    """Declare one struct within another: of defaults, or None where that keeps it off the wire or may be sent."""
    if tag is None and nullable_since == NEVER:
        wire = FieldType(Struct(declaration), since, until, nullable_since, tag)
        return dataclasses.field(default_factory=declaration, metadata={_METADATA_KEY: wire})
    return _field(Struct(declaration), since, until, nullable_since, tag, None)


def _field(type_: Type, since: int, until: int, nullable_since: int, tag: int | None, default: object) -> Any:
    wire = FieldType(type_, since, until, nullable_since, tag)
    return dataclasses.field(default=default, metadata={_METADATA_KEY: wire})


@dataclass_transform()
def struct(declaration: type[T]) -> type[T]:
    """Turn a declaration into a dataclass that other messages nest."""
    return dataclasses.dataclass(slots=True)(declaration)


@dataclass_transform()
def message(key: ApiKey) -> Callable[[type[T]], type[T]]:
    """Turn a declaration into the request or response of an API."""

    def declare(declaration: type[T]) -> type[T]:
        declared = struct(declaration)
        _KEY_BY_MESSAGE[declared] = key
        return declared

    return declare


@dataclass_transform(frozen_default=True)
def record(*, flexible_since: int) -> Callable[[type[T]], type[T]]:
    """Turn a declaration into a record of a machine's log: versioned as a message is, frozen, with tuples for lists."""

    def declare(declaration: type[T]) -> type[T]:
        declared = dataclasses.dataclass(frozen=True, slots=True)(declaration)
        _FLEXIBLE_SINCE_BY_RECORD[declared] = flexible_since
        return declared

    return declare


_KEY_BY_MESSAGE: Final[dict[type[Any], ApiKey]] = {}
_FLEXIBLE_SINCE_BY_RECORD: Final[dict[type[Any], int]] = {}


def fields_of(declaration: type[Any]) -> tuple[Field, ...]:
    """Return the fields of a declared message or struct, in wire order."""
    return tuple(
        Field(
            field.name,
            field.metadata[_METADATA_KEY],
            field.default if field.default_factory is dataclasses.MISSING else field.default_factory(),
        )
        for field in dataclasses.fields(declaration)
    )


def key_of(declaration: type[Any]) -> ApiKey:
    """Return the API that a message belongs to."""
    return _KEY_BY_MESSAGE[declaration]


def is_record(declaration: type[Any]) -> bool:
    return declaration in _FLEXIBLE_SINCE_BY_RECORD


def is_request(declaration: type[Any]) -> bool:
    return not is_record(declaration) and API_BY_KEY[key_of(declaration)].request is declaration


def is_flexible(declaration: type[Any], version: int) -> bool:
    if is_record(declaration):
        return version >= _FLEXIBLE_SINCE_BY_RECORD[declaration]
    return API_BY_KEY[key_of(declaration)].is_flexible(version)
