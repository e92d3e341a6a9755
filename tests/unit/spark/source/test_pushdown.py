"""Filters: what they save reading, and what is left of them."""

from datetime import UTC, datetime

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from riverlog.model.ids import Offset, TopicPartition
from riverlog.spark.source.pushdown import Narrowed, narrowed
from riverlog.spark.source.ranges import Range

NAMES = ("topic", "partition", "offset", "timestamp", "key")
MOMENT = datetime(2026, 1, 31, 12, 0, 0, 1_500, tzinfo=UTC)
MOMENT_MS = 1_769_860_800_001


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([EqualTo(("partition",), 3), IsNotNull(("partition",))], Narrowed(partitions=frozenset([3]))),
        ([In(("partition",), (1, 2)), In(("partition",), (2, 3))], Narrowed(partitions=frozenset([2]))),
        ([EqualTo(("topic",), "a")], Narrowed(topics=frozenset(["a"]))),
        ([GreaterThan(("offset",), 4), LessThan(("offset",), 9)], Narrowed(offset_min=5, offset_max=8)),
        ([GreaterThanOrEqual(("offset",), 4), LessThanOrEqual(("offset",), 9)], Narrowed(offset_min=4, offset_max=9)),
        ([EqualTo(("offset",), 7)], Narrowed(offset_min=7, offset_max=7)),
    ],
)
def test_what_is_exact_is_taken(filters: list[Filter], expected: Narrowed) -> None:
    assert narrowed(filters, NAMES) == (expected, [])


@pytest.mark.parametrize(
    ("one", "least"),
    [
        (GreaterThanOrEqual(("timestamp",), MOMENT), MOMENT_MS + 1),
        (GreaterThan(("timestamp",), MOMENT), MOMENT_MS + 1),
        (EqualTo(("timestamp",), MOMENT), MOMENT_MS + 1),
        (GreaterThan(("timestamp",), MOMENT.replace(microsecond=1_000)), MOMENT_MS + 1),
        (GreaterThanOrEqual(("timestamp",), MOMENT.replace(microsecond=1_000)), MOMENT_MS),
    ],
)
def test_an_earliest_time_saves_reading_and_is_still_applied(one: Filter, least: int) -> None:
    assert narrowed([one], NAMES) == (Narrowed(timestamp_ms_min=least), [one])


@pytest.mark.parametrize(
    "one",
    [
        LessThan(("timestamp",), MOMENT),
        GreaterThan(("timestamp",), MOMENT.replace(tzinfo=None)),
        Not(EqualTo(("partition",), 3)),
        EqualTo(("key",), b"x"),
        IsNotNull(("key",)),
        EqualTo(("offset",), True),
        EqualTo(("partition",), None),
        GreaterThan(("partition",), 3),
        In(("offset",), (1, 2)),
        StringStartsWith(("topic",), "a"),
        EqualTo(("topic", "x"), "a"),
        EqualTo(("elsewhere",), 3),
    ],
)
def test_what_says_nothing_is_left_to_spark(one: Filter) -> None:
    assert narrowed([one], NAMES) == (Narrowed(), [one])


def test_a_field_of_values_is_no_column_of_records() -> None:
    one = EqualTo(("partition",), 3)
    assert narrowed([one], ["offset"]) == (Narrowed(), [one])


def test_ranges_are_narrowed() -> None:
    here = TopicPartition("a", 1)
    whole = Range(here, Offset(10), Offset(20))
    assert Narrowed(offset_min=12, offset_max=14).within(whole) == Range(here, Offset(12), Offset(15))
    assert Narrowed().within(whole) == whole
    assert Narrowed(topics=frozenset(["a"]), partitions=frozenset([1])).wants(here)
    assert not Narrowed(topics=frozenset(["b"])).wants(here)
    assert not Narrowed(partitions=frozenset([2])).wants(here)
