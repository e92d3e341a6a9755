"""The sparse indexes and their file formats."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riverlog.log.segments.index import OffsetIndex, TimeIndex
from riverlog.model.ids import Offset

BASE = Offset(1_000)


def offset_index(*entries: tuple[int, int]) -> OffsetIndex:
    index = OffsetIndex(BASE)
    for last_offset, position in entries:
        index.append(Offset(last_offset), position)
    return index


def time_index(*entries: tuple[int, int]) -> TimeIndex:
    index = TimeIndex(BASE)
    for timestamp, last_offset in entries:
        index.append(timestamp, Offset(last_offset))
    return index


def test_the_offset_index_has_kafkas_form() -> None:
    index = offset_index((1_005, 80), (1_009, 200))
    assert index.encode() == struct.pack(">iiii", 5, 80, 9, 200)
    read = OffsetIndex.decode(BASE, index.encode())
    assert read is not None
    assert [read[slot] for slot in range(len(read))] == [(1_005, 80), (1_009, 200)]


def test_the_time_index_has_kafkas_form() -> None:
    index = time_index((1_700_000_000_000, 1_004), (1_700_000_000_500, 1_009))
    assert index.encode() == struct.pack(">qiqi", 1_700_000_000_000, 4, 1_700_000_000_500, 9)
    read = TimeIndex.decode(BASE, index.encode())
    assert read is not None
    assert [read[slot] for slot in range(len(read))] == [(1_700_000_000_000, 1_004), (1_700_000_000_500, 1_009)]


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1)), unique_by=lambda entry: entry[0]))
def test_both_survive_their_files(entries: list[tuple[int, int]]) -> None:
    offsets = sorted(offset for offset, _ in entries)
    others = sorted({other for _, other in entries})
    pairs = list(zip(offsets, others, strict=False))
    index, times = OffsetIndex(Offset(0)), TimeIndex(Offset(0))
    for offset, other in pairs:
        index.append(Offset(offset), other)
        times.append(other, Offset(offset))
    read = OffsetIndex.decode(Offset(0), index.encode())
    assert read is not None
    assert (read.offsets, read.positions) == (index.offsets, index.positions)
    read_times = TimeIndex.decode(Offset(0), times.encode())
    assert read_times is not None
    assert (read_times.offsets, read_times.timestamps) == (times.offsets, times.timestamps)


def test_an_offset_finds_the_last_batch_that_ends_at_or_before_it() -> None:
    index = offset_index((1_005, 80), (1_009, 200))
    assert index.at_or_before(Offset(1_004)) is None
    assert index.at_or_before(Offset(1_005)) == (1_005, 80)
    assert index.at_or_before(Offset(1_008)) == (1_005, 80)
    assert index.at_or_before(Offset(5_000)) == (1_009, 200)
    assert [index.boundary_at_or_before(position) for position in (79, 80, 199, 200)] == [0, 80, 80, 200]


def test_a_time_finds_the_entries_around_it() -> None:
    index = time_index((100, 1_004), (200, 1_009))
    assert index.around(100) == (None, (100, 1_004))
    assert index.around(101) == ((100, 1_004), (200, 1_009))
    assert index.around(201) == ((200, 1_009), None)


def test_a_time_that_does_not_advance_is_no_entry() -> None:
    index = time_index((-1, 1_000), (100, 1_004), (100, 1_005), (90, 1_006))
    assert len(index) == 1


def test_truncation_forgets_what_lies_behind() -> None:
    index = offset_index((1_005, 80), (1_009, 200), (1_012, 300))
    index.truncate(200)
    assert len(index) == 1
    assert index.end_offset == 1_006
    index.truncate_offsets(Offset(1_005))
    assert len(index) == 0
    assert index.end_offset == BASE
    times = time_index((100, 1_004), (200, 1_009))
    times.truncate(Offset(1_009))
    assert len(times) == 1


@pytest.mark.parametrize(
    "content",
    [b"1234567", struct.pack(">iiii", 9, 80, 5, 200), struct.pack(">iiii", 5, 200, 9, 80), struct.pack(">ii", -1, 80)],
)
def test_a_garbled_offset_index_is_refused(content: bytes) -> None:
    assert OffsetIndex.decode(BASE, content) is None


@pytest.mark.parametrize(
    "content", [b"12345678", struct.pack(">qiqi", 200, 4, 100, 9), struct.pack(">qiqi", 100, 9, 200, 4)]
)
def test_a_garbled_time_index_is_refused(content: bytes) -> None:
    assert TimeIndex.decode(BASE, content) is None


def test_zeros_at_the_end_are_unused_room() -> None:
    index = OffsetIndex.decode(BASE, struct.pack(">ii", 5, 80) + bytes(80))
    assert index is not None
    assert len(index) == 1
    times = TimeIndex.decode(BASE, struct.pack(">qi", 100, 4) + bytes(120))
    assert times is not None
    assert len(times) == 1
