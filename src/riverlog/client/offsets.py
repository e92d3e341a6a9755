"""Offsets by time: which offset a partition had at a moment, or has at either end.

Each leader is asked, and asked again where it has moved; every question is answered, or one exception says why not.
"""

import asyncio
from collections.abc import Mapping
from enum import IntEnum
from itertools import count, groupby
from typing import Final, Literal, NamedTuple

from riverlog.client.arguments import checked_int64, checked_partition
from riverlog.client.errors import KafkaError, TimedOut, failure
from riverlog.client.network.cluster import Cluster
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_TIMESTAMP, NodeId, Offset, TopicPartition
from riverlog.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    SpecialTimestamp,
)


class IsolationLevel(IntEnum):
    """Which records a reader sees: all, or only those of committed transactions and of none."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class FoundOffset(NamedTuple):
    """An offset with its record's timestamp and leader epoch. Offset -1: no record is as young as that."""

    offset: Offset
    timestamp_ms: int = NO_TIMESTAMP
    leader_epoch: int = -1


OffsetQuestion = int | Literal["earliest", "latest", "max_timestamp"]
"""A time in milliseconds, which means the first record at or after it, or a place in the log."""

_PLACES: Final = {
    "earliest": SpecialTimestamp.EARLIEST,
    "latest": SpecialTimestamp.LATEST,
    "max_timestamp": SpecialTimestamp.MAX_TIMESTAMP,
}


async def list_offsets(
    cluster: Cluster,
    questions: Mapping[TopicPartition, OffsetQuestion],
    *,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    seconds: float = 30.0,
) -> dict[TopicPartition, FoundOffset]:
    """Answer all questions or raise KafkaError; leaders that moved or are away are asked again until time is up."""
    deadline = asyncio.get_running_loop().time() + seconds
    open_questions = {checked_partition(partition): _timestamp(question) for partition, question in questions.items()}
    found: dict[TopicPartition, FoundOffset] = {}
    for topic in {partition.topic for partition in open_questions}:
        await cluster.topic(topic, seconds=seconds)
    _check_partitions(cluster, open_questions)
    for attempt in count(1):
        problem = await _ask_leaders(cluster, open_questions, found, isolation)
        if not open_questions:
            return found
        pause = cluster.backoff(attempt)
        if asyncio.get_running_loop().time() + pause > deadline:
            partition = next(iter(open_questions))
            raise problem or TimedOut(f"{partition} has no leader that could be asked for offsets")
        await asyncio.sleep(pause)
        try:
            await cluster.refresh()
        except KafkaError as error:
            if not error.retriable:
                raise
    raise AssertionError("unreachable")


async def _ask_leaders(
    cluster: Cluster,
    questions: dict[TopicPartition, int],
    found: dict[TopicPartition, FoundOffset],
    isolation: IsolationLevel,
) -> KafkaError | None:
    """Move what can be answered from `questions` to `found`; give the last problem that may pass."""
    by_leader: dict[NodeId, list[TopicPartition]] = {}
    for partition in sorted(questions):
        leader = cluster.leader_of(partition)
        if leader is not None:
            by_leader.setdefault(leader, []).append(partition)
    problem: KafkaError | None = None
    for leader, partitions in by_leader.items():
        request = ListOffsetsRequest(
            isolation_level=isolation,
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(partition_index=partition.partition, timestamp=questions[partition])
                        for partition in group
                    ],
                )
                for topic, group in groupby(partitions, key=lambda partition: partition.topic)
            ],
            timeout_ms=int(cluster.request_seconds * 1000),
        )
        try:
            response: ListOffsetsResponse = await cluster.ask(leader, request)
        except KafkaError as error:
            if not error.retriable:
                raise
            problem = error
            continue
        for topic in response.topics:
            for entry in topic.partitions:
                partition = TopicPartition(topic.name, entry.partition_index)
                if entry.error_code == ErrorCode.NONE:
                    found[partition] = FoundOffset(Offset(entry.offset), entry.timestamp, entry.leader_epoch)
                    questions.pop(partition, None)
                    continue
                problem = failure(entry.error_code, f"offsets of {partition}")
                if not problem.retriable:
                    raise problem
    return problem


def _timestamp(question: OffsetQuestion) -> int:
    if isinstance(question, int) and not isinstance(question, bool):
        return checked_int64("a time in milliseconds", question, least=-(2**63))
    if not isinstance(question, str) or question not in _PLACES:
        raise ValueError(f"{question!r} is no place in a log; give milliseconds or one of {', '.join(_PLACES)}")
    return _PLACES[question]


def _check_partitions(cluster: Cluster, partitions: Mapping[TopicPartition, int]) -> None:
    for partition in partitions:
        known = cluster.topics.get(partition.topic)
        if known is not None and not 0 <= partition.partition < len(known.partitions):
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {partition.topic!r} has partitions 0 to {len(known.partitions) - 1}, not {partition.partition}",
            )
