"""Columns of any layout become one of the few that encoders read, or are refused in words."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from riverlog.arrow.encoding.layouts import ENDS_MAX, TooLarge, contents, header_lists, names_of, numbers, times_ms
from riverlog.client.errors import KafkaError

CELLS = [b"ab", None, b"cd", b""]
PAIR = pa.struct([("key", pa.large_string()), ("value", pa.large_binary())])
HEADERS = [None, [], [{"key": "a", "value": None}, {"key": "ä", "value": b"x"}]]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.string(), pa.large_string()])
def test_content_of_any_type_is_bytes_with_ends_of_32_bits(kind: pa.DataType) -> None:
    found = contents(pa.array(CELLS, pa.binary()).cast(kind)[1:], "value")
    assert found.type == pa.binary()
    assert found.to_pylist() == CELLS[1:]
    found.validate(full=True)


def test_a_slice_far_behind_in_a_large_column_is_narrowed_over_the_same_bytes() -> None:
    behind = b"abcdef"
    held = np.zeros(ENDS_MAX + 10, np.uint8)  # the system gives pages of it only where something is written
    held[-len(behind) :] = list(behind)
    ends = np.array([0, ENDS_MAX // 2, len(held) - 6, len(held) - 6, len(held) - 4, len(held)], np.int64)
    large = pa.Array.from_buffers(pa.large_binary(), 5, [None, pa.py_buffer(ends), pa.py_buffer(held)])
    assert contents(large[2:], "value").to_pylist() == [b"", b"ab", b"cdef"]
    with pytest.raises(TooLarge):
        contents(large, "value")


@pytest.mark.parametrize("outer", [pa.list_, pa.large_list, pa.list_view, pa.large_list_view])
def test_headers_in_any_list_are_lists_of_text_and_bytes(outer: Any) -> None:
    found = header_lists(pa.array([[], *HEADERS], outer(PAIR))[1:])
    assert found.type == pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    assert found.to_pylist() == HEADERS


def test_a_map_is_headers_and_columns_without_a_type_are_not_there() -> None:
    found = header_lists(pa.array([[("a", b"x")], None], pa.map_(pa.string(), pa.binary())))
    assert found.to_pylist() == [[{"key": "a", "value": b"x"}], None]
    nothing = pa.nulls(2)
    assert contents(nothing, "key") is names_of(nothing, "topic") is header_lists(nothing) is numbers(nothing) is None
    assert times_ms(nothing, 77).tolist() == [77, 77]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_are_milliseconds(unit: str) -> None:
    moment = datetime(1969, 12, 31, 23, 59, 58, tzinfo=UTC)
    assert times_ms(pa.array([moment, None], pa.timestamp(unit, "UTC")), 77).tolist() == [-2_000, 77]


def test_other_types_are_refused_with_their_names() -> None:
    for read in (lambda array: contents(array, "key"), header_lists, numbers, lambda array: times_ms(array, 0)):
        with pytest.raises(KafkaError, match=r'the column "\w+" is bool, and must be'):
            read(pa.array([True]))
    with pytest.raises(KafkaError, match="must be int"):
        numbers(pa.array([1], pa.int64()))
    with pytest.raises(KafkaError, match="must be array"):
        header_lists(pa.array([[{"name": "a", "value": b""}]]))


def test_names_are_utf_8() -> None:
    broken = pa.array([b"\xff"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 1, broken.buffers())
    with pytest.raises(KafkaError, match='in the column "topic" there is text that is not UTF-8'):
        names_of(text, "topic")
    pairs = pa.StructArray.from_arrays([text, broken], ["key", "value"])
    with pytest.raises(KafkaError, match='in the column "headers" there is text that is not UTF-8'):
        header_lists(pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), pairs))


def test_names_of_any_letters_are_kept_also_in_a_part_of_a_column() -> None:
    text = pa.array(["größe", "kind", None, "trace", "größe"])
    for part in (text, text[1:4], text[4:], text[:0]):
        assert names_of(part, "topic").to_pylist() == part.to_pylist()
    broken = pa.Array.from_buffers(pa.string(), 3, pa.array([b"kind", b"trace", b"\xff"], pa.binary()).buffers())
    assert names_of(broken[:2], "topic").to_pylist() == ["kind", "trace"]
    with pytest.raises(KafkaError, match="text that is not UTF-8"):
        names_of(broken[1:], "topic")
