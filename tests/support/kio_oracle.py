"""kio, an independent codec generated from Kafka's own schemas, as the judge of ours; and random messages of both.

kio cannot judge everything: it raises on unknown tagged fields, and knows no Produce before version 3.
"""

import dataclasses
import datetime
import io
import types
import typing
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from random import Random
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from riverlog.wire.apis import APIS, Api
from riverlog.wire.primitives import cut
from riverlog.wire.types import (
    BOOLEAN,
    FLOAT64,
    NO_UUID,
    OWN_TAG,
    RECORDS,
    STRING,
    UUID_,
    Array,
    Field,
    Fixed,
    Struct,
    Type,
    Variable,
    fields_of,
)

LETTERS = "abcdefghijklmnopqrstuvwxyz-._0ÄßΩ漢🙂"
TEXT = LETTERS * 1000
MILLISECOND = datetime.timedelta(milliseconds=1)
ERROR_CODES = list(ErrorCode)
TIMES = ("log_append_time_ms", "retention_time_ms", "session_lifetime_ms", "transaction_start_time_ms")
"""Fields that kio keeps as a datetime or timedelta, which have fewer values than an int64."""
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def spoken() -> Iterator[tuple[Api, str, int]]:
    """Yield each API, direction and version that riverlog speaks; kio knows none of our own."""
    for api in APIS:
        for direction in ("request", "response"):
            for version in api.versions:
                yield api, direction, version


def kio_entity(api: Api, direction: str, version: int) -> type[Any]:
    """Find kio's class for one version of a message."""
    module = import_module(f"kio.schema.{api.key.name.lower()}.v{version}.{direction}")
    entity: type[Any] = getattr(module, api.name + direction.title())
    return entity


def kio_encode(entity: Any) -> bytes:
    stream = io.BytesIO()
    entity_writer(type(entity))(stream, entity)
    return stream.getvalue()


def kio_decode(entity: type[Any], encoded: bytes) -> Any:
    message, size = entity_reader(entity)(encoded, 0)
    assert size == len(encoded), f"kio read {size} of {len(encoded)} bytes"
    return message


def random_message(declaration: type[Any], version: int, random: Random) -> Any:
    """Fill the fields that the version has; the others keep their defaults, as they do after decoding."""
    return declaration(
        **{
            field.name: _random_field(field, version, random)
            for field in _fields(declaration)
            if field.wire.is_in(version)
        }
    )


@cache
def _fields(declaration: type[Any]) -> list[Field]:
    """Return the fields that Kafka knows; kio raises on ours."""
    return [field for field in fields_of(declaration) if (field.wire.tag or 0) < OWN_TAG]


def _random_field(field: Field, version: int, random: Random) -> Any:
    if field.name.endswith("error_code"):
        return int(random.choice(ERROR_CODES))
    if field.name in TIMES:
        return random.choice([0, 1_700_000_000_123])
    if field.wire.tag is not None and random.random() < 0.5:
        return field.default
    if field.wire.is_nullable_in(version) and random.random() < 0.3:
        return None
    if isinstance(field.type, Array):
        return [_random_value(field.type.element, version, random) for _ in range(_few(random))]
    value = _random_value(field.type, version, random)
    if field.name.endswith("_message"):
        return cut(value)  # as an answer has it
    if field.wire.tag is not None and isinstance(field.type, Struct) and value == field.type.declaration():
        return None  # a tagged struct of defaults is not written, so it would not come back
    return value


def _random_value(type_: Type, version: int, random: Random) -> Any:
    match type_:
        case Struct(declaration):
            return random_message(declaration, version, random)
        case Variable():
            size = _length(random)
            if type_ is STRING:
                return _text(size, random)
            return memoryview(random.randbytes(size)) if type_ is RECORDS else random.randbytes(size)
        case Fixed(code, size):
            if type_ is UUID_:
                return UUID(int=random.getrandbits(128)) if random.random() < 0.8 else NO_UUID
            if type_ is BOOLEAN:
                return random.random() < 0.5
            if type_ is FLOAT64:
                return random.uniform(-1e9, 1e9)
            return _integer(8 * size, random, signed=code.islower())
    raise AssertionError(type_)


def random_entity(entity: type[Any], random: Random) -> Any:
    """Fill kio's class for one version of a message."""
    hints = _hints(entity)
    values = {}
    for field in dataclasses.fields(entity):
        may_be_left_out = "tag" in field.metadata and field.default is not dataclasses.MISSING
        if may_be_left_out and random.random() < 0.5:
            continue
        value = _random_of_kio(hints[field.name], field.metadata.get("kafka_type"), random)
        values[field.name] = cut(value) if value and field.name.endswith("_message") else value
    return entity(**values)


@cache
def _hints(entity: type[Any]) -> dict[str, Any]:
    return typing.get_type_hints(entity)


def _random_of_kio(hint: Any, kafka_type: str | None, random: Random) -> Any:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        inner = [choice for choice in typing.get_args(hint) if choice is not type(None)]
        return None if random.random() < 0.3 else _random_of_kio(inner[0], kafka_type, random)
    if typing.get_origin(hint) is tuple:
        return tuple(_random_of_kio(typing.get_args(hint)[0], kafka_type, random) for _ in range(_few(random)))
    match kafka_type:
        case None:
            return random_entity(hint, random)
        case "int8" | "int16" | "int32" | "int64":
            return _integer(int(kafka_type[3:]), random, signed=True)
        case "uint16":
            return _integer(16, random, signed=False)
        case "float64":
            return random.uniform(-1e9, 1e9)
        case "bool":
            return random.random() < 0.5
        case "string":
            return _text(_length(random), random)
        case "uuid":
            return UUID(int=random.getrandbits(128))
        case "records" | "bytes":
            return random.randbytes(_length(random))
        case "error_code":
            return random.choice(ERROR_CODES)
        case "timedelta_i32":
            return _integer(32, random, signed=True) * MILLISECOND
        case "timedelta_i64":
            return random.choice([-1, 0, 1, 10**13]) * MILLISECOND
        case "datetime_i64":
            return EPOCH + random.randrange(2**41) * MILLISECOND
    raise AssertionError(f"kio type {kafka_type} is new here")


def _few(random: Random) -> int:
    """Return a count: mostly few, now and then enough for a varint of two bytes."""
    return random.choice([0, 1, 1, 2, 3]) if random.random() < 0.997 else 130


def _length(random: Random) -> int:
    return random.choice([0, 1, 5, 20, 126, 127, 128]) if random.random() < 0.99 else random.choice([200, 16_400])


def _text(size: int, random: Random) -> str:
    start = random.randrange(len(LETTERS))
    return TEXT[start : start + size]


def _integer(bits: int, random: Random, *, signed: bool) -> int:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return random.choice([low, -1 if signed else 1, 0, 1, high, random.randint(low, high)])
