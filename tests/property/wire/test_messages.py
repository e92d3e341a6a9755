"""Every message in every version against kio, byte for byte, in both directions."""

import dataclasses
import types
import typing
from random import Random
from typing import Any

import pytest

from riverlog.wire.apis import APIS, Api
from riverlog.wire.codec import decode, encode
from riverlog.wire.types import NEVER, Array, Struct, fields_of
from tests.support.kio_oracle import kio_decode, kio_encode, kio_entity, random_entity, random_message, spoken

ROUNDS = 5

NULL_SINCE = {"MetadataRequest": 1, "JoinGroupResponse": 7}
"""Messages that start out with a null which older versions cannot say: all topics, and no protocol."""

CASES = [pytest.param(*case, id=f"{case[0].name}-{case[1]}-{case[2]}") for case in spoken()]
every_message_and_version = pytest.mark.parametrize(("api", "direction", "version"), CASES)
every_message_of_kafka = pytest.mark.parametrize(
    ("api", "direction", "version"), [case for case in CASES if not case.values[0].is_own]
)


@every_message_of_kafka
def test_what_kio_writes_we_read_and_write_again(api: Api, direction: str, version: int) -> None:
    declaration = getattr(api, direction)
    entity = kio_entity(api, direction, version)
    random = Random(f"{api.name} {direction} {version}")
    for _ in range(ROUNDS):
        theirs = kio_encode(random_entity(entity, random))
        message, position = decode(declaration, version, theirs)
        assert position == len(theirs)
        assert encode(message, version) == theirs


@every_message_of_kafka
def test_what_we_write_kio_reads_and_writes_again(api: Api, direction: str, version: int) -> None:
    declaration = getattr(api, direction)
    entity = kio_entity(api, direction, version)
    random = Random(f"{direction} {api.name} {version}")
    for _ in range(ROUNDS):
        message = random_message(declaration, version, random)
        ours = encode(message, version)
        assert kio_encode(kio_decode(entity, ours)) == ours


@every_message_and_version
def test_what_we_write_we_read_again(api: Api, direction: str, version: int) -> None:
    declaration = getattr(api, direction)
    random = Random(f"{version} {direction} {api.name}")
    for _ in range(ROUNDS):
        message = random_message(declaration, version, random)
        ours = encode(message, version)
        assert decode(declaration, version, ours) == (message, len(ours))


@every_message_and_version
def test_a_message_of_defaults_can_be_written(api: Api, direction: str, version: int) -> None:
    declaration = getattr(api, direction)
    if version < NULL_SINCE.get(declaration.__name__, 0):
        return
    encoded = encode(declaration(), version)
    assert decode(declaration, version, encoded) == (declaration(), len(encoded))


def declarations() -> list[type[Any]]:
    """Return every message and every struct that one of them nests."""
    found: list[type[Any]] = []
    waiting = [declaration for api in APIS for declaration in (api.request, api.response)]
    while waiting:
        declaration = waiting.pop()
        if declaration not in found:
            found.append(declaration)
            for field in fields_of(declaration):
                inner = field.type.element if isinstance(field.type, Array) else field.type
                if isinstance(inner, Struct):
                    waiting.append(inner.declaration)
    return found


@pytest.mark.parametrize("declaration", declarations(), ids=lambda declaration: declaration.__qualname__)
def test_annotations_say_what_the_wire_does(declaration: type[Any]) -> None:
    hints = typing.get_type_hints(declaration)
    for field in fields_of(declaration):
        hint = hints[field.name]
        optional = isinstance(hint, types.UnionType) and type(None) in typing.get_args(hint)
        may_be_none = field.wire.nullable_since < NEVER or (
            isinstance(field.type, Struct) and field.wire.tag is not None
        )
        assert optional == may_be_none, field.name
        assert ("list[" in str(hint)) == isinstance(field.type, Array), field.name
    assert declaration.__doc__
    assert not declaration.__doc__.startswith(f"{declaration.__name__}("), "dataclass wrote the docstring"
    assert all(field.default is not dataclasses.MISSING for field in fields_of(declaration))
