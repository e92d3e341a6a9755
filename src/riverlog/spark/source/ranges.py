"""Ranges of offsets: what a batch reads, how much of it, and in how many tasks.

Offsets are written as Spark's Kafka source writes them, `{"orders": {"0": 42}}`, always in the same order: Spark takes
offsets for new when their text is. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import floor
from typing import NamedTuple

from riverlog.model.ids import Offset, TopicPartition

Offsets = dict[TopicPartition, Offset]
"""The next offset to read of each partition."""
OffsetsJson = dict[str, dict[str, int]]


class Range(NamedTuple):
    """Offsets of a partition, from one up to another."""

    partition: TopicPartition
    from_offset: Offset
    until_offset: Offset

    @property
    def size(self) -> int:
        return self.until_offset - self.from_offset


def to_json(offsets: Mapping[TopicPartition, int]) -> OffsetsJson:
    """Write offsets, topics by name and partitions by number."""
    found: OffsetsJson = {}
    for (topic, index), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(index)] = int(offset)
    return found


def from_json(written: Mapping[str, Mapping[str, int]]) -> Offsets:
    """Read offsets that a checkpoint brought back."""
    return {
        TopicPartition(topic, int(index)): Offset(offset)
        for topic, partitions in written.items()
        for index, offset in partitions.items()
    }


def limited(begins: Offsets, ends: Offsets, records_max: int) -> Offsets:
    """Go no further than about so many records in all: each partition in proportion to what it has, one at least."""
    sizes = {each: end - begins[each] for each, end in ends.items() if end > begins[each]}
    total = sum(sizes.values())
    if total <= records_max:
        return ends
    found = dict(ends)
    for each, size in sizes.items():
        share = records_max * size / total
        found[each] = Offset(min(ends[each], begins[each] + (floor(share) if share >= 1 else 1)))
    return found


def divided(ranges: Iterable[Range], *, parts_min: int | None, records_max: int | None) -> list[Range]:
    """Divide into tasks: one for each range, or more where so many are wanted, or where one would read too much."""
    parts = [part for each in ranges if each.size > 0 for part in _cut(each, _parts(each.size, records_max))]
    total = sum(each.size for each in parts)
    if parts_min is None or len(parts) >= parts_min or total == 0:
        return parts
    return [part for each in parts for part in _cut(each, -(-each.size * parts_min // total))]


def _parts(size: int, records_max: int | None) -> int:
    return 1 if records_max is None else -(-size // records_max)


def _cut(whole: Range, parts: int) -> Sequence[Range]:
    """Cut a range into so many that differ by a record at most."""
    parts = min(parts, whole.size)
    bounds = [Offset(whole.from_offset + whole.size * number // parts) for number in range(parts + 1)]
    return [Range(whole.partition, *pair) for pair in pairwise(bounds)]
