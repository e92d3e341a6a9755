"""Values parsed together are what each of them is alone, whatever stands beside it."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from riverlog.arrow.json.objects import find_objects
from riverlog.arrow.json.values import _compiled_search, json_schema, typed

SCHEMA = json_schema({"order": "int64", "customer": "string", "paid": "bool"})

SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5)
OBJECTS = st.dictionaries(
    st.sampled_from(["order", "customer", "paid", "other"]), SCALARS | st.lists(SCALARS, max_size=2)
)
FITTING = st.fixed_dictionaries(
    {}, optional={"order": st.integers(-(2**63), 2**63 - 1), "customer": st.text(max_size=9), "paid": st.booleans()}
)
WRITTEN = st.sampled_from([{}, {"indent": 1}, {"ensure_ascii": False}])
PIECES = st.lists(
    st.sampled_from([b"{", b"}", b'"', b"\\", b"[", b"]", b":", b",", b"1", b" ", b"\n", b"\0"]), max_size=8
)


def encoded(value: Any, how: dict[str, Any]) -> bytes:
    return json.dumps(value, **how).encode("utf-8", "replace")


VALUES = st.lists(
    st.none()
    | st.builds(encoded, FITTING, WRITTEN)
    | st.builds(encoded, OBJECTS, WRITTEN)
    | st.builds(b"".join, PIECES)
    | st.sampled_from([b'{"order":1}{"order":2}', b"{", b"}", b"{}\0", b'{"customer":"\xff"}', b"[]", b"", b"5"]),
    max_size=12,
)


@given(VALUES)
@hypothesis_settings(max_examples=150, deadline=None)
def test_no_value_changes_what_its_neighbours_are(values: list[bytes | None]) -> None:
    found = typed(pa.array(values, pa.binary()), SCHEMA)
    found.values.validate(full=True)
    alone = [typed(pa.array([value], pa.binary()), SCHEMA) for value in values]
    assert found.values.to_pylist() == [each.values[0].as_py() for each in alone]
    assert list(found.bad) == [row for row, each in enumerate(alone) if each.bad]


@given(st.lists(FITTING, max_size=12), WRITTEN)
@hypothesis_settings(max_examples=60, deadline=None)
def test_what_fits_is_read(rows: list[dict[str, Any]], how: dict[str, Any]) -> None:
    found = typed(pa.array([encoded(row, how) for row in rows], pa.binary()), SCHEMA)
    assert found.bad == {}
    assert found.values.to_pylist() == [dict.fromkeys(SCHEMA.names) | row for row in rows]


@given(st.lists(st.builds(b"".join, PIECES) | st.builds(encoded, OBJECTS, WRITTEN), min_size=1, max_size=20))
@hypothesis_settings(max_examples=150, deadline=None)
def test_the_compiled_search_finds_the_same_objects(values: list[bytes]) -> None:
    content = np.frombuffer(b"".join(values), np.uint8)
    ends = np.cumsum([0, *map(len, values)]).astype(np.int32)
    plain, compiled = np.zeros(len(values), np.bool_), np.zeros(len(values), np.bool_)
    find_objects(content, ends, plain)
    _compiled_search()(content, ends, compiled)
    assert plain.tolist() == compiled.tolist()
    for value, is_object in zip(values, plain, strict=True):
        if isinstance(_loaded(value), dict):
            assert is_object, "an object is always found"


def _loaded(value: bytes) -> object:
    try:
        return json.loads(value.decode())
    except ValueError:
        return None
