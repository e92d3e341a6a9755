"""Declarations become dataclasses whose fields know their versions."""

from uuid import UUID

import pytest

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import (
    INT32,
    NO_UUID,
    STRING,
    Array,
    Struct,
    array,
    batches,
    binary,
    boolean,
    fields_of,
    int32,
    is_flexible,
    key_of,
    message,
    nested,
    string,
    struct,
    uuid,
)


@struct
class Leaf:
    """A nested struct."""

    number: int = int32(default=-1)


@message(ApiKey.METADATA)
class Tree:
    """Every kind of default."""

    name: str = string()
    nickname: str | None = string(since=1, nullable_since=2)
    flag: bool = boolean(until=3, default=True)
    blob: bytes = binary()
    id: UUID = uuid()
    records: memoryview | None = batches()
    leaf: Leaf | None = nested(Leaf, since=9, tag=0)
    leaves: list[Leaf] = array(Leaf)
    names: list[str] | None = array(STRING, nullable_since=0)
    numbers: list[int] | None = array(INT32, nullable_since=0, default_factory=list)


def test_every_field_may_be_left_out() -> None:
    assert Tree() == Tree("", None, True, b"", NO_UUID, None, None, [], None, [])


def test_two_messages_do_not_share_a_default() -> None:
    Tree().leaves.append(Leaf())
    assert Tree().leaves == []


def test_messages_take_no_unknown_attributes() -> None:
    with pytest.raises(AttributeError):
        Tree().nmae = "a typo"  # type: ignore[attr-defined]


def test_fields_know_their_versions() -> None:
    fields = {field.name: field for field in fields_of(Tree)}
    assert list(fields) == list(Tree.__slots__)  # type: ignore[attr-defined]
    nickname = fields["nickname"].wire
    assert [nickname.is_in(version) for version in (0, 1, 99)] == [False, True, True]
    assert [nickname.is_nullable_in(version) for version in (1, 2)] == [False, True]
    assert [fields["flag"].wire.is_in(version) for version in (3, 4)] == [True, False]
    assert fields["leaf"].wire.tag == 0
    assert fields["leaves"].type == Array(Struct(Leaf))
    assert fields["numbers"].default == []


def test_a_message_knows_its_api_and_through_it_which_versions_are_flexible() -> None:
    assert key_of(Tree) is ApiKey.METADATA
    assert [is_flexible(Tree, version) for version in (8, 9)] == [False, True]
