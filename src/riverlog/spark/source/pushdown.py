"""What filters say about where rows lie: topics, partitions, offsets, and how old records may be. Pure.

A filter about partitions and offsets is done with when the right ranges are read. One about times is not: records are
not in the order of their times. Those before the first that is young enough need not be read all the same.
"""

from collections.abc import Container, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from riverlog.arrow.columns import MICROSECONDS, OFFSET_MAX
from riverlog.model.ids import Offset, TopicPartition
from riverlog.spark.source.ranges import Range

_ALWAYS_THERE: Final = ("topic", "partition", "offset")


class Narrowed(NamedTuple):
    """Where rows must lie to pass; None is anywhere."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    offset_min: int = 0
    offset_max: int = OFFSET_MAX
    timestamp_ms_min: int = -(2**63)

    def wants(self, partition: TopicPartition) -> bool:
        """Return whether rows of a partition can pass."""
        topic, index = partition
        return (self.topics is None or topic in self.topics) and (self.partitions is None or index in self.partitions)

    def within(self, whole: Range) -> Range:
        """Return the part of a range in which rows can pass."""
        begin = max(whole.from_offset, self.offset_min)
        return Range(whole.partition, Offset(begin), Offset(min(whole.until_offset, self.offset_max + 1)))


def narrowed(filters: Sequence[Filter], names: Container[str]) -> tuple[Narrowed, list[Filter]]:
    """Apply what filters say about these columns of records; return what is left for Spark to apply."""
    found = Narrowed()
    left = []
    for each in filters:
        path: tuple[str, ...] = getattr(each, "attribute", ())
        column = path[0] if len(path) == 1 else None
        taken = _taken(found, each, column) if column is not None and column in names else None
        if taken is None:
            left.append(each)
            continue
        found = taken
        if column == "timestamp":
            left.append(each)
    return found, left


def _taken(found: Narrowed, each: Filter, column: str) -> Narrowed | None:
    """Narrow further by one filter; None where it says nothing that helps."""
    if isinstance(each, IsNotNull):
        return found if column in _ALWAYS_THERE else None
    value: Any = getattr(each, "value", None)
    match column:
        case "topic" | "partition":
            return _one_of(found, each, column, str if column == "topic" else int, value)
        case "offset" if _is(value, int):
            return _offsets(found, each, value)
        case "timestamp" if isinstance(value, datetime):
            return _times(found, each, value)
        case _:
            return None


def _one_of(found: Narrowed, each: Filter, column: str, kind: type, value: Any) -> Narrowed | None:
    match each:
        case EqualTo() | EqualNullSafe() if _is(value, kind):
            wanted = frozenset([value])
        case In() if all(_is(one, kind) for one in value):
            wanted = frozenset(value)
        case _:
            return None
    if column == "topic":
        return found._replace(topics=wanted if found.topics is None else found.topics & wanted)
    return found._replace(partitions=wanted if found.partitions is None else found.partitions & wanted)


def _offsets(found: Narrowed, each: Filter, value: int) -> Narrowed | None:
    match each:
        case EqualTo() | EqualNullSafe():
            least, most = value, value
        case GreaterThan():
            least, most = value + 1, OFFSET_MAX
        case GreaterThanOrEqual():
            least, most = value, OFFSET_MAX
        case LessThan():
            least, most = 0, value - 1
        case LessThanOrEqual():
            least, most = 0, value
        case _:
            return None
    return found._replace(offset_min=max(found.offset_min, least), offset_max=min(found.offset_max, most))


def _times(found: Narrowed, each: Filter, value: datetime) -> Narrowed | None:
    """Take the earliest time; records have whole milliseconds."""
    if value.tzinfo is None:
        return None
    since = value.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    microseconds = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    match each:
        case EqualTo() | EqualNullSafe() | GreaterThanOrEqual():
            least = -(-microseconds // MICROSECONDS)
        case GreaterThan():
            least = microseconds // MICROSECONDS + 1
        case _:
            return None
    return found._replace(timestamp_ms_min=max(found.timestamp_ms_min, least))


def _is(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
