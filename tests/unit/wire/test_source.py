"""Source under construction says what was asked, and counts how few bytes a value can take."""

import pytest

from riverlog.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from riverlog.wire.messages.fetch import FetchPartition
from riverlog.wire.source import FunctionSource, bytes_min
from riverlog.wire.types import INT64, RECORDS, STRING, UUID_, Array, Struct, Type


def test_a_function_is_written_compiled_and_run() -> None:
    source = FunctionSource("double(values)", {})
    total = source.fresh()
    source.line(f"{total} = 0")
    with source.block("for value in values"):
        source.line(f"{total} += {source.name(2, 'factor')} * value")
    source.line(f"return {total}")
    assert source.text == (
        "def double(values):\n    v1 = 0\n    for value in values:\n        v1 += factor * value\n    return v1\n"
    )
    assert source.compiled("double", "test")([1, 2]) == 6


def test_two_values_with_the_same_wish_get_two_names() -> None:
    source = FunctionSource("nothing()", {})
    first, second = object(), object()
    assert [source.name(value, "it") for value in (first, second, first)] == ["it", "it_", "it"]


def test_a_struct_is_named_by_its_codes() -> None:
    source = FunctionSource("nothing()", {})
    name, size = source.struct("ih?", "pack")
    assert (name, size) == ("pack_ih_", 7)
    assert source.names[name](1, 2, True).hex() == "00000001000201"  # type: ignore[operator]


@pytest.mark.parametrize(
    ("type_", "version", "flexible", "expected"),
    [
        (INT64, 0, False, 8),
        (UUID_, 0, True, 16),
        (STRING, 0, False, 2),
        (STRING, 0, True, 1),
        (RECORDS, 0, False, 4),
        (Array(STRING), 0, False, 4),
        (Struct(Cursor), 0, True, 6),
        (Struct(FetchPartition), 4, False, 16),
        (Struct(FetchPartition), 12, True, 33),
        (Struct(FetchPartition), 18, True, 33),
        (Struct(DescribeTopicPartitionsRequest), 0, True, 7),
    ],
)
def test_the_fewest_bytes_of_a_value(type_: Type, version: int, flexible: bool, expected: int) -> None:
    assert bytes_min(type_, version, flexible) == expected
