"""Columns as the encoding kernel reads them: buffers of one type each, whose bounds are checked once per batch.

The kernel follows addresses and asks nothing. So whatever it will read is asserted here: that a column has the layout
of `layouts`, that its ends only grow and stay within the content, and that a bitmap has a bit for each row.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from riverlog.arrow.decoding.kernel import Bytes, Ints, Longs
from riverlog.arrow.encoding.rows import HEADER_OVERHEAD

_END_BYTES: Final = 4


class ContentColumn(NamedTuple):
    """A column of bytes as Arrow keeps it; without `ends` there is none."""

    ends: Ints
    valid: Bytes
    first: int
    """Which bit of `valid` is the first row's."""
    content: Bytes

    @property
    def size(self) -> int:
        """Count the bytes of all rows."""
        return int(self.ends[-1]) - int(self.ends[0]) if len(self.ends) else 0


class HeaderColumn(NamedTuple):
    """The headers of rows: lists of names and contents."""

    ends: Ints
    valid: Bytes
    first: int
    names: ContentColumn
    contents: ContentColumn

    @property
    def size(self) -> int:
        """Count the bytes of all headers, with the most that each has beside its name and content."""
        return self.names.size + self.contents.size + len(self.names.ends) * HEADER_OVERHEAD


class NumberColumn(NamedTuple):
    """A column of numbers as Arrow keeps it; without `numbers` there is none."""

    numbers: Ints
    valid: Bytes
    first: int


def content_column(array: Any, rows: int) -> ContentColumn:
    """Return a column of bytes, or one that is not there."""
    if array is None:
        return _NO_CONTENT
    assert array.type == pa.binary(), array.type
    assert len(array) == rows, f"{len(array)} cells for {rows} rows"
    valid, ends, content = array.buffers()
    held = _NO_BYTES if content is None else _read_only(np.frombuffer(content, np.uint8))
    return ContentColumn(_ends(ends, array, len(held)), _bits(valid, array), array.offset, held)


def header_column(array: Any, rows: int) -> HeaderColumn:
    """Return the headers of rows, or none."""
    if array is None:
        return _NO_HEADERS
    assert pa.types.is_list(array.type), array.type
    assert len(array) == rows, f"{len(array)} cells for {rows} rows"
    pairs = array.values
    names, contents = pairs.flatten()
    assert names.type == pa.string(), names.type
    valid, ends = array.buffers()[:2]
    return HeaderColumn(
        _ends(ends, array, len(pairs)),
        _bits(valid, array),
        array.offset,
        content_column(names.view(pa.binary()), len(pairs)),
        content_column(contents, len(pairs)),
    )


def number_column(array: Any, rows: int) -> NumberColumn:
    """Return a column of numbers of 32 bits, or one that is not there."""
    if array is None or rows == 0:
        return _NO_NUMBERS
    assert array.type == pa.int32(), array.type
    assert len(array) == rows, f"{len(array)} cells for {rows} rows"
    valid, numbers = array.buffers()
    held = np.frombuffer(numbers, np.int32, rows, _END_BYTES * array.offset)
    return NumberColumn(_read_only(held), _bits(valid, array), array.offset)


def topic_numbers(places: NDArray[np.int32] | None, rows: int, topics: int) -> Ints:
    """Return which topic each row goes to; none where all go to the first."""
    if places is None:
        assert topics > 0, "the first topic is known"
        return _NO_ENDS
    assert places.dtype == np.int32, places.dtype
    assert places.shape == (rows,), f"{places.shape} topics for {rows} rows"
    assert rows == 0 or (places.min() >= 0 and places.max() < topics), "each topic is known"
    found: Ints = _read_only(np.ascontiguousarray(places))
    return found


def times(timestamps_ms: NDArray[np.int64], rows: int) -> Longs:
    """Return the time of each row."""
    assert timestamps_ms.dtype == np.int64, timestamps_ms.dtype
    assert timestamps_ms.shape == (rows,), f"{timestamps_ms.shape} times for {rows} rows"
    found: Longs = _read_only(np.ascontiguousarray(timestamps_ms))
    return found


def _ends(buffer: Any, array: Any, last_max: int) -> Ints:
    """Return where rows end, beginning with where the first one starts. An array without rows may have no buffer."""
    if len(array) == 0:
        return _NO_ROWS
    ends: Ints = _read_only(np.frombuffer(buffer, np.int32, len(array) + 1, _END_BYTES * array.offset))
    assert ends[0] >= 0, f"the first row begins at {ends[0]}"
    assert bool((ends[1:] >= ends[:-1]).all()), "ends only grow"
    assert ends[-1] <= last_max, f"the last row ends at {ends[-1]} of {last_max}"
    return ends


def _bits(valid: Any, array: Any) -> Bytes:
    """Return which rows are not null; nothing where all are not."""
    if valid is None or array.null_count == 0:
        return _NO_BYTES
    bits: Bytes = _read_only(np.frombuffer(valid, np.uint8))
    assert 8 * len(bits) >= array.offset + len(array), "each row has its bit"
    return bits


def _read_only(array: Any) -> Any:
    """Hand an array to numba as one type, whoever owns it: it compiles for each anew."""
    view = array.view()
    view.flags.writeable = False
    return view


_NO_BYTES: Final[Bytes] = _read_only(np.empty(0, np.uint8))
_NO_ENDS: Final[Ints] = _read_only(np.empty(0, np.int32))
_NO_ROWS: Final[Ints] = _read_only(np.zeros(1, np.int32))
_NO_CONTENT: Final = ContentColumn(_NO_ENDS, _NO_BYTES, 0, _NO_BYTES)
_NO_HEADERS: Final = HeaderColumn(_NO_ENDS, _NO_BYTES, 0, _NO_CONTENT, _NO_CONTENT)
_NO_NUMBERS: Final = NumberColumn(_NO_ENDS, _NO_BYTES, 0)
