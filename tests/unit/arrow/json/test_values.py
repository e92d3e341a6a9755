"""Typed columns of values that are JSON; the property tests show that no row gets what is another's."""

import pyarrow as pa
import pytest

from riverlog.arrow.json.values import NO_OBJECT, NOTHING, json_schema, typed

SCHEMA = json_schema({"order": "int64", "customer": "string"})


def test_fields_are_typed_missing_ones_null_and_unknown_ones_left_out() -> None:
    values = [b'{"order": 1, "customer": "ada"}', b"{}", None, b' {\n"order":2, "more": {"a": [1]}}\n']
    found = typed(pa.array(values, pa.binary()), SCHEMA)
    assert found.values.type == pa.struct(list(SCHEMA))
    assert found.values.to_pylist() == [
        {"order": 1, "customer": "ada"},
        {"order": None, "customer": None},
        None,
        {"order": 2, "customer": None},
    ]
    assert found.bad == {}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", NO_OBJECT),
        (b"5", NO_OBJECT),
        (b"[1]", NO_OBJECT),
        (b'{"order": 1}{"order": 2}', NO_OBJECT),
        (b'{"order": 1', NO_OBJECT),
        (b'{"order": 1}\x00', NO_OBJECT),
        (b'{"customer": "a\nb"}', NO_OBJECT),
        (b'{"a":' * 501 + b"1" + b"}" * 501, NO_OBJECT),
        (b'{"order": "x"}', "changed from number to string"),
        (b'{"order": 1,}', "Missing a name"),
        (b'{"customer": "\xff"}', "UTF8"),
    ],
)
def test_bad_values_stand_alone_with_what_is_wrong(value: bytes, reason: str) -> None:
    good = [b'{"order": %d}' % number for number in range(9)]
    found = typed(pa.array([*good[:4], value, *good[4:]], pa.binary()), SCHEMA)
    assert list(found.bad) == [4]
    assert reason in found.bad[4]
    assert [row and row["order"] for row in found.values.to_pylist()] == [0, 1, 2, 3, None, 4, 5, 6, 7, 8]


def test_values_without_what_must_not_be_null_are_bad() -> None:
    schema = pa.schema([pa.field("order", pa.int64(), nullable=False), pa.field("customer", pa.string())])
    values = [b'{"order": 1}', b"{}", None, b'{"order": null}', b"5", b'{"order": 2, "customer": "ada"}']
    found = typed(pa.array(values, pa.binary()), schema)
    missing = "a field is missing or null that must not be: order"
    assert found.bad == {1: missing, 2: NOTHING, 3: missing, 4: NO_OBJECT}
    assert [row and row["order"] for row in found.values.to_pylist()] == [1, None, None, None, None, 2]
    assert typed(pa.array(values[:1], pa.binary()), schema).values.type == pa.struct(list(schema))


def test_a_part_of_an_array_is_that_part() -> None:
    values = pa.array([b"{", b'{"order": 1}', None, b'{"order": 2}', b"}"], pa.binary())[1:4]
    assert [row and row["order"] for row in typed(values, SCHEMA).values.to_pylist()] == [1, None, 2]


@pytest.mark.parametrize("values", [[], [None, None], [b"{", None]])
def test_nothing_to_parse_is_nothing(values: list[bytes | None]) -> None:
    assert typed(pa.array(values, pa.binary()), SCHEMA).values.to_pylist() == [None] * len(values)


def test_a_schema_is_arrows_own_or_names_with_types() -> None:
    assert json_schema(SCHEMA) is SCHEMA
    assert json_schema({"at": pa.timestamp("us")}) == pa.schema([("at", pa.timestamp("us"))])
    with pytest.raises(ValueError, match="there is no type 'long long'"):
        json_schema({"order": "long long"})
