"""Where a scan begins and ends: what a person may write, and what it means in each partition.

    "1h" or "-1h" or timedelta   so long ago            "15:00", "2026-01-31", datetime   that time
    "earliest", "latest"         either end             7, -7     that offset, that many records before the end
    {0: 7, 2: 9}                 an offset for each partition

By time, a partition is read from its first record that is as young, and older ones behind it are left out. It is read
until the first record that is as young as the other end: what lies behind that is not looked at.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, assert_never

from riverlog.arrow.columns import Cut
from riverlog.model.ids import NO_OFFSET, Offset, TopicPartition
from riverlog.model.moments import milliseconds, moment_ms, span_ms

if TYPE_CHECKING:
    from riverlog.client.network.cluster import Cluster
    from riverlog.client.offsets import IsolationLevel, OffsetQuestion

Bound = str | int | datetime | timedelta | Mapping[int, int]
"""What a person may write."""


class PartitionEnd(Enum):
    """Either end of a partition, by the words for it."""

    EARLIEST = ("earliest", "beginning")
    LATEST = ("latest", "end", "now")


class AtTimestamp(NamedTuple):
    """A time."""

    timestamp_ms: int


class AtOffset(NamedTuple):
    """An offset, or below zero so many records before the end."""

    offset: int


class AtOffsets(NamedTuple):
    """An offset for each partition; those that are not named are read whole."""

    offsets: Mapping[int, int]


Position = PartitionEnd | AtTimestamp | AtOffset | AtOffsets


def position_of(bound: Bound, *, now: datetime) -> Position:
    """Understand a bound; ValueError says what may be written."""
    match bound:
        case bool():
            raise ValueError(f"{bound} is no position in a topic")
        case int():
            return AtOffset(bound)
        case datetime():
            return AtTimestamp(max(0, milliseconds(bound if bound.tzinfo else bound.replace(tzinfo=now.tzinfo))))
        case timedelta():
            return AtTimestamp(max(0, milliseconds(now - abs(bound))))
        case str():
            text = bound.strip()
            for end in PartitionEnd:
                if text.lower() in end.value:
                    return end
            return AtTimestamp(moment_ms(f"-{text}" if span_ms(text) is not None else text, now=now))
        case Mapping():
            return AtOffsets(dict(bound))
        case _:
            raise ValueError(f"{bound!r} is no position in a topic; give a time, an offset, 'earliest' or 'latest'")


async def cuts(
    cluster: "Cluster",
    partitions: Sequence[TopicPartition],
    since: Position,
    until: Position,
    isolation: "IsolationLevel",
) -> dict[TopicPartition, Cut]:
    """Return what is to be read of each partition; those of which that is nothing are left out."""
    starts = await _offsets(cluster, partitions, PartitionEnd.EARLIEST, isolation)
    ends = await _offsets(cluster, partitions, PartitionEnd.LATEST, isolation)
    begins = await _resolved(cluster, since, starts, starts, ends, isolation)
    stops = await _resolved(cluster, until, ends, starts, ends, isolation)
    timestamp_ms_min = since.timestamp_ms if isinstance(since, AtTimestamp) else -(2**63)
    found = {each: Cut(begins[each], stops[each], timestamp_ms_min) for each in partitions}
    return {each: cut for each, cut in found.items() if cut.from_offset < cut.until_offset}


Offsets = Mapping[TopicPartition, Offset]


async def _resolved(
    cluster: "Cluster", where: Position, otherwise: Offsets, starts: Offsets, ends: Offsets, isolation: "IsolationLevel"
) -> Offsets:
    """Return the offset of a position in each partition, within what the partition has."""
    match where:
        case PartitionEnd.EARLIEST:
            return starts
        case PartitionEnd.LATEST:
            return ends
        case AtTimestamp():
            wanted = await _offsets(cluster, list(starts), where, isolation)
            wanted = {each: ends[each] if offset == NO_OFFSET else offset for each, offset in wanted.items()}
        case AtOffset(offset):
            wanted = {each: Offset(offset if offset >= 0 else ends[each] + offset) for each in starts}
        case AtOffsets(offsets):
            wanted = {each: Offset(offsets.get(each.partition, otherwise[each])) for each in starts}
        case _:
            assert_never(where)
    return {each: min(max(offset, starts[each]), ends[each]) for each, offset in wanted.items()}


async def _offsets(
    cluster: "Cluster",
    partitions: Sequence[TopicPartition],
    where: PartitionEnd | AtTimestamp,
    isolation: "IsolationLevel",
) -> Offsets:
    from riverlog.client.offsets import list_offsets  # positions are also understood where no client is loaded

    questions: dict[PartitionEnd, OffsetQuestion] = {PartitionEnd.EARLIEST: "earliest", PartitionEnd.LATEST: "latest"}
    question = questions[where] if isinstance(where, PartitionEnd) else where.timestamp_ms
    found = await list_offsets(cluster, dict.fromkeys(partitions, question), isolation=isolation)
    return {each: answer.offset for each, answer in found.items()}
