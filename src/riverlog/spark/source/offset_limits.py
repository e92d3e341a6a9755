"""Which partitions a query reads, and where it begins and ends: what a program may write, as for Spark's Kafka source.

    subscribe="orders,returns" · subscribePattern="orders-.*" · assign={"orders": [0, 1]}
    "earliest" · "latest" · {"orders": {"0": 42, "1": -2}} with -1 for latest and -2 for earliest
    a time in milliseconds for all partitions, or for each: {"orders": {"0": 1700000000000}}

Pure: what it means in a cluster is found out by the `planner`.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from riverlog.arrow.positions import AtTimestamp, PartitionEnd
from riverlog.model.ids import TopicPartition
from riverlog.spark.options import BadOption, Options

LATEST: Final = -1
EARLIEST: Final = -2


class NamedTopics(NamedTuple):
    """All partitions of these topics."""

    topics: tuple[str, ...]


class TopicPattern(NamedTuple):
    """All partitions of all topics whose whole name is as the pattern says."""

    pattern: str


class AssignedPartitions(NamedTuple):
    """These partitions and no others."""

    partitions: tuple[TopicPartition, ...]


TopicSelection = NamedTopics | TopicPattern | AssignedPartitions


class SpecificOffsets(NamedTuple):
    """An offset for each partition, or -1 and -2 for its ends."""

    offsets: Mapping[TopicPartition, int]


class SpecificTimestamps(NamedTuple):
    """A time for each partition, in milliseconds."""

    timestamps_ms: Mapping[TopicPartition, int]


OffsetLimit = PartitionEnd | AtTimestamp | SpecificOffsets | SpecificTimestamps

CHOICES: Final = ("subscribe", "subscribePattern", "assign")


def topic_selection(options: Options) -> TopicSelection:
    """Understand which topics are read; exactly one of the three options says it."""
    given = [name for name in CHOICES if options.text(name) is not None]
    if len(given) != 1:
        what = f"{' and '.join(given)} exclude each other" if given else "no topic is named"
        raise BadOption(" | ".join(given or CHOICES), None, f"{what}; set one of {', '.join(CHOICES)}")
    text = options.text(given[0]) or ""
    if given == ["assign"]:
        return AssignedPartitions(_assigned(text))
    if given == ["subscribePattern"]:
        _check_pattern(text)
        return TopicPattern(text)
    topics = tuple(dict.fromkeys(topic.strip() for topic in text.split(",") if topic.strip()))
    if not topics:
        raise BadOption("subscribe", text, "write topics with commas between them, as in orders,returns")
    return NamedTopics(topics)


def offset_limit(options: Options, which: str, *, default: PartitionEnd) -> OffsetLimit:
    """Understand where a query is "starting" or "ending"; options about times come first, as in Spark."""
    if (text := options.text(f"{which}Timestamp")) is not None:
        return AtTimestamp(_milliseconds(f"{which}Timestamp", text))
    name = f"{which}OffsetsByTimestamp"
    if (text := options.text(name)) is not None:
        return SpecificTimestamps(_by_partition(name, text, 'as in {"orders": {"0": 1700000000000}}', least=0))
    name = f"{which}Offsets"
    text = options.text(name)
    if text is None:
        return default
    for end in PartitionEnd:
        if text.lower() == end.value[0]:
            return end
    return SpecificOffsets(
        _by_partition(name, text, 'earliest, latest, or {"orders": {"0": 42, "1": -2}}', least=EARLIEST)
    )


def option_of(which: str, where: OffsetLimit) -> str:
    """Name the option that says where a query is "starting" or "ending"."""
    match where:
        case AtTimestamp():
            return f"{which}Timestamp"
        case SpecificTimestamps():
            return f"{which}OffsetsByTimestamp"
        case _:
            return f"{which}Offsets"


def check_batch(starting: OffsetLimit, ending: OffsetLimit) -> None:
    """Refuse a batch that would end before it begins."""
    _check_end("startingOffsets", starting, PartitionEnd.LATEST, LATEST)
    _check_end("endingOffsets", ending, PartitionEnd.EARLIEST, EARLIEST)


def check_complete(which: str, named: Iterable[TopicPartition], partitions: Iterable[TopicPartition]) -> None:
    """Refuse a limit that leaves partitions out, or names others: it would be guesswork where those begin."""
    wanted, there = set(named), set(partitions)
    if missing := sorted(there - wanted):
        raise BadOption(which, None, f"it does not say where {_some(missing)} begins; name every partition")
    if extra := sorted(wanted - there):
        raise BadOption(which, None, f"it names {_some(extra)}, which this query does not read")


def _check_end(name: str, where: OffsetLimit, end: PartitionEnd, number: int) -> None:
    word = end.value[0]
    if where is end:
        raise BadOption(name, word, "a batch would have nothing to read; choose another one")
    if isinstance(where, SpecificOffsets):
        for partition, offset in where.offsets.items():
            if offset == number:
                raise BadOption(name, str(number), f"{partition} would have nothing to read there ({word})")


def matching(pattern: str, topics: Iterable[str]) -> list[str]:
    """Return the topics whose whole name matches the pattern."""
    compiled = re.compile(pattern)
    return sorted(topic for topic in topics if compiled.fullmatch(topic))


def _check_pattern(text: str) -> None:
    try:
        re.compile(text)
    except re.error as problem:
        raise BadOption("subscribePattern", text, f"that is no regular expression: {problem}") from None


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    example = 'write partitions as in {"orders": [0, 1]}'
    found: list[TopicPartition] = []
    for topic, indexes in _object("assign", text, example).items():
        if not isinstance(indexes, list) or not all(_is_index(index) for index in indexes):
            raise BadOption("assign", text, example)
        found += [TopicPartition(topic, index) for index in indexes]
    if not found:
        raise BadOption("assign", text, f"no partition is named; {example}")
    return tuple(sorted(set(found)))


def _by_partition(name: str, text: str, example: str, *, least: int) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for topic, numbers in _object(name, text, f"write {example}").items():
        if not isinstance(numbers, dict):
            raise BadOption(name, text, f"write {example}")
        for index, number in numbers.items():
            if not index.isdecimal() or not isinstance(number, int) or isinstance(number, bool) or number < least:
                raise BadOption(
                    name, text, f"{index!r}: {number!r} of topic {topic} is not understood; write {example}"
                )
            found[TopicPartition(topic, int(index))] = number
    return found


def _object(name: str, text: str, example: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as problem:
        raise BadOption(name, text, f"that is not JSON ({problem}); {example}") from None
    if not isinstance(found, dict):
        raise BadOption(name, text, example)
    return found


def _milliseconds(name: str, text: str) -> int:
    if not text.isdecimal():
        raise BadOption(name, text, "write milliseconds since 1970, as in 1700000000000")
    return int(text)


def _is_index(index: object) -> bool:
    return isinstance(index, int) and not isinstance(index, bool) and index >= 0


def _some(partitions: list[TopicPartition]) -> str:
    more = f" and {len(partitions) - 3} more" if len(partitions) > 3 else ""
    return ", ".join(map(str, partitions[:3])) + more
