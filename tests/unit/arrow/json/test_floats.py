"""Numbers that are written as text, for JSON has none such."""

import pyarrow as pa
import pytest

from riverlog.arrow.json.floats import unquoted
from riverlog.arrow.json.values import typed

SCHEMA = pa.schema(
    [
        ("x", pa.float64()),
        ("text", pa.string()),
        ("inner", pa.struct([("list", pa.list_(pa.float32()))])),
        ("amount", pa.decimal128(38, 2)),
        ("long", pa.int64()),
    ]
)


def test_only_fields_of_floating_numbers_are_written_anew() -> None:
    value = (
        b'{"x": "NaN", "text": "NaN", "inner": {"list": ["-Infinity", 1.5, null, NaN]}, "other": "Infinity", '
        b'"amount": 123456789012345678901234567890.12, "long": 9223372036854775807}'
    )
    assert unquoted(value, SCHEMA) == (
        b'{"x":NaN,"text":"NaN","inner":{"list":[-Infinity,1.5,null,NaN]},"other":"Infinity",'
        b'"amount":123456789012345678901234567890.12,"long":9223372036854775807}'
    )


@pytest.mark.parametrize("value", [b'{"x": 1}', b'{"x": "NaN", "x": 1}', b'{"x": "NaN"', b'{"x": "NaN", "y": "\xff"}'])
def test_other_values_are_left_alone(value: bytes) -> None:
    assert unquoted(value, SCHEMA) is None


def test_a_text_of_that_kind_in_a_bad_value_helps_nothing() -> None:
    found = typed(pa.array([b'{"text": "NaN", "long": "x"}', b'{"x": "NaN", "long": "x"}', b'{"x": "+INF"}']), SCHEMA)
    assert list(found.bad) == [0, 1]
    assert found.values[2].as_py()["x"] == float("inf")
