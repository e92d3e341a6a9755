"""Ranges of verified bytes against a set of numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riverlog.log.segments import verified_ranges as module
from riverlog.log.segments.verified_ranges import VerifiedRanges

CHANGES = st.lists(st.tuples(st.sampled_from(["add", "truncate"]), st.integers(0, 60), st.integers(1, 12)))


@given(CHANGES)
def test_ranges_are_a_set_of_positions(changes: list[tuple[str, int, int]]) -> None:
    ranges, model = VerifiedRanges(), set[int]()
    for change, start, length in changes:
        if change == "add":
            ranges.add(start, start + length)
            model |= set(range(start, start + length))
        else:
            ranges.truncate(start)
            model = {position for position in model if position < start}
    for position in range(80):
        end = position
        while end in model:
            end += 1
        assert ranges.end_of(position) == end


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "VERIFIED_RANGES_PER_SEGMENT_MAX", 4)
    ranges = VerifiedRanges()
    for number in range(10):
        ranges.add(100 * number, 100 * number + 10 + number)
    remembered = [number for number in range(10) if ranges.end_of(100 * number) > 100 * number]
    assert remembered == [6, 7, 8, 9]
