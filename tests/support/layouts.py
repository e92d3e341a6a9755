"""Rows in any layout that Arrow has for them, made by choices: hypothesis draws them, a fuzzer reads them from bytes.

Slices of longer arrays, cells that are null over content, content before the first row, children that are slices,
bitmaps that begin within a byte, ends of 32 and 64 bits, views, dictionaries, runs, and arrays without any buffers.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Choose = Callable[[int], int]
"""Choose a number below another one."""

CONTENTS: Final = (None, b"", b"a", b"key", b"\xff\x00", "ä".encode(), b"x" * 127, b"y" * 300)
NAMES: Final = ("", "trace", "ä", "n" * 70)
PARTITIONS: Final = {"a": 1, "b": 3, "c": 7}
CANONICAL: Final = {
    "value": pa.binary(),
    "key": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}

Cells = list[Any]


def rows(choose: Choose, count: int) -> dict[str, Cells]:
    """Choose columns and their cells."""
    made: dict[str, Cells] = {"value": [_content(choose) for _ in range(count)]}
    if choose(2):
        made["key"] = [_content(choose) for _ in range(count)]
    made["topic"] = [list(PARTITIONS)[choose(3)] for _ in range(count)]
    if choose(2):
        made["partition"] = [(None, 0)[choose(2)] for _ in range(count)]
    made["timestamp"] = [(0, 1_700_000_000_123_456, -1)[choose(3)] for _ in range(count)]
    if choose(2):
        made["headers"] = [_headers(choose) for _ in range(count)]
    return made


def canonical(cells: dict[str, Cells]) -> pa.RecordBatch:
    """Lay out rows in the plainest way."""
    return pa.record_batch({name: pa.array(column, CANONICAL[name]) for name, column in cells.items()})


def wild(choose: Choose, cells: dict[str, Cells]) -> pa.RecordBatch:
    """Lay out the same rows in ways that are chosen."""
    arrays: dict[str, Any] = {}
    for name, column in cells.items():
        match name:
            case "value" | "key":
                arrays[name] = content_array(choose, column, is_text=False)
            case "topic":
                arrays[name] = content_array(choose, [cell.encode() for cell in column], is_text=True)
            case "headers":
                arrays[name] = header_array(choose, column)
            case _:
                arrays[name] = _sliced(choose, column, lambda part, kind=CANONICAL[name]: pa.array(part, kind))
    return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))


def content_array(choose: Choose, cells: Sequence[bytes | None], *, is_text: bool) -> Any:
    """Lay out content in one of Arrow's ways; text is valid UTF-8."""
    if not cells and choose(2):
        return pa.Array.from_buffers((pa.binary(), pa.large_string())[choose(2)], 0, [None, None, pa.py_buffer(b"")])
    kinds = [pa.string(), pa.large_string(), pa.string_view()]
    if not is_text:
        kinds = [pa.binary(), pa.large_binary(), pa.binary_view()]
    kind = kinds[choose(3)]
    match choose(5):
        case 0 if kind not in (pa.string_view(), pa.binary_view()):
            return _sliced(choose, cells, lambda part: _over_content(choose, part, kind))
        case 1 if kind not in (pa.string_view(), pa.binary_view()):
            return _sliced(choose, cells, lambda part: _cells(part, kind).dictionary_encode())
        case 2 if kind not in (pa.string_view(), pa.binary_view()) and cells:
            return _sliced(choose, cells, lambda part: pc.run_end_encode(_cells(part, kind)))
        case 3 if not is_text and len(lengths := {len(cell) for cell in cells if cell is not None}) == 1:
            width = lengths.pop()
            filled = [None if cell is None else cell for cell in cells]
            return _cells(filled, pa.binary(width)) if width else _cells(cells, kind)
        case _:
            return _sliced(choose, cells, lambda part: _cells(part, kind))


def header_array(choose: Choose, cells: Sequence[Any]) -> Any:
    """Lay out headers in one of Arrow's ways."""
    texts = (pa.string(), pa.large_string(), pa.string_view())
    contents = (pa.binary(), pa.large_binary(), pa.binary_view())
    key, value = texts[choose(3)], contents[choose(3)]
    pair = pa.struct([("key", key), ("value", value)])
    match choose(7):
        case 0:
            kind = pa.large_list(pair)
        case 1:
            kind = pa.list_view(pair)
        case 2:
            kind = pa.large_list_view(pair)
        case 3:
            maps = [None if cell is None else [(each["key"], each["value"]) for each in cell] for cell in cells]
            return _sliced(choose, maps, lambda part: pa.array(part, pa.map_(key, value)))
        case 4:
            return _sliced(choose, cells, lambda part: _with_sliced_children(choose, part))
        case 5:
            return _sliced(choose, cells, lambda part: pa.array(part, CANONICAL["headers"]))
        case _:
            kind = pa.list_(pair)
    return _sliced(choose, cells, lambda part: pa.array(part, kind))


def _content(choose: Choose) -> bytes | None:
    return CONTENTS[choose(len(CONTENTS))]


def _headers(choose: Choose) -> Any:
    if choose(3) == 0:
        return None
    return [{"key": NAMES[choose(len(NAMES))], "value": _content(choose)} for _ in range(choose(3))]


def _cells(cells: Sequence[Any], kind: pa.DataType) -> Any:
    is_text = kind in (pa.string(), pa.large_string(), pa.string_view())
    return pa.array([cell.decode() if is_text and cell is not None else cell for cell in cells], kind)


def _sliced(choose: Choose, cells: Sequence[Any], build: Callable[[Sequence[Any]], Any]) -> Any:
    """Lay out cells with others around them, and cut those off."""
    before, behind = (0, 0, 1, 9)[choose(4)], (0, 0, 1, 3)[choose(4)]
    if not cells:
        return build(cells)
    whole = build([*[cells[-1]] * before, *cells, *[cells[0]] * behind])
    return whole.slice(before, len(cells))


def _over_content(choose: Choose, cells: Sequence[bytes | None], kind: pa.DataType) -> Any:
    """Lay out cells by hand: content stands before the first one, and below those that are null."""
    content, ends = bytearray(b"before"), [6]
    for cell in cells:
        content += b"null" if cell is None else cell
        ends.append(len(content))
    width = np.int64 if kind in (pa.large_string(), pa.large_binary()) else np.int32
    bits = np.packbits([cell is not None for cell in cells], bitorder="little") if cells else np.zeros(0, np.uint8)
    valid = pa.py_buffer(bits.tobytes()) if None in cells or choose(2) else None
    return pa.Array.from_buffers(kind, len(cells), [valid, pa.py_buffer(np.array(ends, width)), pa.py_buffer(content)])


def _with_sliced_children(choose: Choose, cells: Sequence[Any]) -> Any:
    """Lay out lists by hand over children that are slices, with pairs before the first and in those that are null."""
    pairs, ends = [{"key": "before", "value": b"before"}], [1]
    for cell in cells:
        pairs += [{"key": "null", "value": b""}] if cell is None else cell
        ends.append(len(pairs))
    names = _sliced(choose, [pair["key"] for pair in pairs], lambda part: pa.array(part, pa.string()))
    values = _sliced(choose, [pair["value"] for pair in pairs], lambda part: pa.array(part, pa.binary()))
    children = pa.StructArray.from_arrays([names, values], ["key", "value"])
    bits = np.packbits([cell is not None for cell in cells], bitorder="little") if cells else np.zeros(0, np.uint8)
    buffers = [pa.py_buffer(bits.tobytes()), pa.py_buffer(np.array(ends, np.int32))]
    return pa.Array.from_buffers(CANONICAL["headers"], len(cells), buffers, children=[children])
