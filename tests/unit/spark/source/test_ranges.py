"""Ranges: how offsets are written, how much a batch takes, and how it is divided."""

import json

from hypothesis import given
from hypothesis import strategies as st

from riverlog.model.ids import Offset, TopicPartition
from riverlog.spark.source.ranges import Offsets, Range, divided, from_json, limited, to_json

sizes = st.lists(st.integers(0, 10_000), min_size=1, max_size=12)


def offsets(*numbers: int) -> Offsets:
    return {TopicPartition("a", index): Offset(number) for index, number in enumerate(numbers)}


def test_offsets_are_always_written_in_the_same_order() -> None:
    first = {TopicPartition("b", 10): Offset(1), TopicPartition("b", 9): Offset(2), TopicPartition("a", 0): Offset(3)}
    again = dict(reversed(first.items()))
    assert json.dumps(to_json(first)) == json.dumps(to_json(again)) == '{"a": {"0": 3}, "b": {"9": 2, "10": 1}}'
    assert from_json(to_json(first)) == first


def test_a_batch_takes_of_each_partition_in_proportion() -> None:
    assert limited(offsets(0, 0, 5), offsets(100, 300, 5), 40) == offsets(10, 30, 5)
    assert limited(offsets(0, 0), offsets(100, 300), 400) == offsets(100, 300)
    assert limited(offsets(0, 0, 0), offsets(1, 1, 1000), 1) == offsets(1, 1, 1), "each goes on"


@given(sizes, st.integers(1, 5_000))
def test_a_batch_goes_on_everywhere_and_not_much_too_far(numbers: list[int], records_max: int) -> None:
    begins, ends = offsets(*[0] * len(numbers)), offsets(*numbers)
    found = limited(begins, ends, records_max)
    assert sum(found.values()) <= records_max + len(numbers)
    assert all(begins[each] < found[each] <= ends[each] for each in ends if ends[each] > begins[each])


@given(sizes, st.integers(1, 40), st.integers(1, 3_000) | st.none())
def test_parts_cover_the_ranges_without_a_gap(numbers: list[int], parts_min: int, records_max: int | None) -> None:
    whole = [Range(TopicPartition("a", index), Offset(7), Offset(7 + size)) for index, size in enumerate(numbers)]
    parts = divided(whole, parts_min=parts_min, records_max=records_max)
    for each in whole:
        mine = [part for part in parts if part.partition == each.partition]
        found = [offset for part in mine for offset in range(part.from_offset, part.until_offset)]
        assert found == [*range(each.from_offset, each.until_offset)]
    assert all(part.size > 0 for part in parts)
    if records_max is not None:
        assert all(part.size <= records_max for part in parts)


def test_parts_are_one_for_each_range_unless_more_are_wanted() -> None:
    whole = [Range(TopicPartition("a", 0), Offset(0), Offset(90)), Range(TopicPartition("a", 1), Offset(0), Offset(10))]
    assert divided(whole, parts_min=None, records_max=None) == whole
    assert divided(whole, parts_min=2, records_max=None) == whole
    assert [part.size for part in divided(whole, parts_min=10, records_max=None)] == [10] * 10
    assert [part.size for part in divided(whole, parts_min=None, records_max=40)] == [30, 30, 30, 10]
