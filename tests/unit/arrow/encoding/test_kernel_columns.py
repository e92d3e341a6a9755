"""What the kernel would read beyond its arrays ends in an assertion."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from riverlog.arrow.encoding.kernel_columns import content_column, header_column, number_column, times, topic_numbers


def cells(ends: list[int], content: bytes = b"abc", valid: bytes | None = None) -> Any:
    buffers = [None if valid is None else pa.py_buffer(valid), pa.py_buffer(np.array(ends, np.int32))]
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, [*buffers, pa.py_buffer(content)])


@pytest.mark.parametrize("ends", [[0, 2, 1], [2, 1, 3], [0, 9, 3], [0, -1, 3]])
def test_ends_only_grow_and_stay_within_the_content(ends: list[int]) -> None:
    with pytest.raises(AssertionError):
        content_column(cells(ends), len(ends) - 1)


def test_the_size_of_a_part_is_that_of_its_rows() -> None:
    found = content_column(cells([0, 1, 3])[1:], 1)
    assert (found.size, found.first, found.ends.tolist(), found.valid.size) == (2, 1, [1, 3], 0)
    assert content_column(None, 3).size == 0
    nothing = pa.Array.from_buffers(pa.binary(), 0, [None, None, pa.py_buffer(b"")])
    assert content_column(nothing, 0).ends.tolist() == [0]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary(), pa.binary_view(), pa.int32()])
def test_content_is_bytes_with_ends_of_32_bits(kind: pa.DataType) -> None:
    with pytest.raises(AssertionError, match=str(kind)):
        content_column(pa.nulls(2, kind), 2)


def test_headers_are_lists_of_text_and_bytes() -> None:
    wrong = pa.array(
        [[{"key": "a", "value": b""}]], pa.list_(pa.struct([("key", pa.string()), ("value", pa.large_binary())]))
    )
    for column in (wrong, wrong.cast(pa.large_list(wrong.type.value_type))):
        with pytest.raises(AssertionError, match="large"):
            header_column(column, 1)


def test_each_row_has_its_number_topic_and_time() -> None:
    with pytest.raises(AssertionError, match="int64"):
        number_column(pa.array([1], pa.int64()), 1)
    with pytest.raises(AssertionError, match="1 cells for 2 rows"):
        number_column(pa.array([1], pa.int32()), 2)
    with pytest.raises(AssertionError, match="each topic is known"):
        topic_numbers(np.array([0, 1], np.int32), 2, 1)
    with pytest.raises(AssertionError, match="times for 2 rows"):
        times(np.zeros(1, np.int64), 2)
    found = number_column(pa.array([1, None, 3], pa.int32())[1:], 2)
    assert (found.first, found.numbers.tolist()[1], found.valid[0]) == (1, 3, 0b101)
