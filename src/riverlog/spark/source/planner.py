"""Asks the cluster what a plan needs: which partitions there are, and where a query begins and ends in them.

A planner waits for a cluster that is away, for a bounded time; then one exception says what was tried. It is for
programs without an event loop: its own runs while one of its methods is called.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, TypeVar, assert_never

from riverlog.arrow.positions import AtTimestamp, PartitionEnd
from riverlog.client.errors import KafkaError, Unreachable
from riverlog.client.network.cluster import Cluster, Topic
from riverlog.client.offsets import OffsetQuestion, list_offsets
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_OFFSET, Offset, TopicId, TopicPartition
from riverlog.spark.options import BadOption
from riverlog.spark.source.long_poll import wait_for_records
from riverlog.spark.source.offset_limits import (
    EARLIEST,
    LATEST,
    AssignedPartitions,
    NamedTopics,
    OffsetLimit,
    SpecificOffsets,
    SpecificTimestamps,
    TopicPattern,
    check_complete,
    matching,
)
from riverlog.spark.source.options import SourceOptions
from riverlog.spark.source.ranges import Offsets

FIRST_WAIT_SECONDS_MAX: Final = 15.0
"""How long a cluster is waited for that was never reached."""
WAIT_SECONDS_MAX: Final = 120.0
"""How long one is waited for that was there before."""

ASK_SECONDS_MAX: Final = 5.0
"""How long brokers are asked for offsets at a time: one may not have learnt of a partition yet."""

T = TypeVar("T")


class Planner:
    """Finds partitions and offsets."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._runner = asyncio.Runner()
        self._cluster: Cluster | None = None
        self._was_reached = False
        self.topic_ids: dict[str, TopicId] = {}
        """Of the topics that `partitions` found last."""

    def partitions(self, *, may_miss: bool = False) -> list[TopicPartition]:
        """Return the partitions that are there now of those that were chosen, in order; all topics must be there."""
        return self._run(lambda cluster: self._partitions(cluster, may_miss))

    def offsets(self, partitions: Iterable[TopicPartition], where: OffsetLimit, *, option: str = "") -> Offsets:
        """Return the offsets of a limit; `option` is the one that names it."""
        wanted = list(partitions)
        if not wanted and isinstance(where, PartitionEnd):
            return {}
        return self._run(lambda cluster: self._offsets(cluster, wanted, where, option))

    def ends(self, partitions: Iterable[TopicPartition]) -> Offsets | None:
        """Return the end offsets of partitions; None where one of them is gone."""
        try:
            return self.offsets(partitions, PartitionEnd.LATEST)
        except KafkaError as problem:
            if problem.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return None

    def wait(self, ends: Offsets, seconds: float) -> None:
        """Wait until a partition has a record at its end, or time is up; a cluster that is away is not waited for."""

        async def wait(cluster: Cluster) -> None:
            try:
                await wait_for_records(cluster, ends, self._options.isolation, seconds)
            except KafkaError as problem:
                if not problem.retriable:
                    raise
                await asyncio.sleep(seconds)

        self._run(wait)

    def close(self) -> None:
        """Close the connections to the cluster."""
        try:
            if self._cluster is not None:
                self._runner.run(self._cluster.close())
        finally:
            self._runner.close()

    # With the cluster -----------------------------------------------------------------------------------------

    def _run(self, work: Callable[[Cluster], Awaitable[T]]) -> T:
        return self._runner.run(self._persist(work))

    async def _persist(self, work: Callable[[Cluster], Awaitable[T]]) -> T:
        """Try until the cluster is reached, or that has taken too long."""
        loop = asyncio.get_running_loop()
        usual = WAIT_SECONDS_MAX if self._was_reached else FIRST_WAIT_SECONDS_MAX
        seconds = self._options.wait_seconds_max or usual
        deadline = loop.time() + seconds
        attempt = 0
        if self._cluster is None:
            self._cluster = Cluster(self._options.cluster.bootstrap, **self._options.cluster.client)
        while True:
            try:
                found = await work(self._cluster)
            except KafkaError as problem:
                attempt += 1
                pause = self._cluster.backoff(attempt)
                unknown = problem.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # asked for often enough by now
                if not problem.retriable or unknown or loop.time() + pause > deadline:
                    raise _explained(problem, seconds) from None
                await asyncio.sleep(pause)
            else:
                self._was_reached = True
                return found

    async def _partitions(self, cluster: Cluster, may_miss: bool) -> list[TopicPartition]:
        match self._options.topics:
            case NamedTopics(topics):
                found = await _topics(cluster, topics, may_miss)
            case AssignedPartitions(partitions):
                found = await _topics(cluster, sorted({partition.topic for partition in partitions}), may_miss)
            case TopicPattern(pattern):
                cluster.watch_all()
                await cluster.refresh()
                known = cluster.topics
                found = [known[name] for name in matching(pattern, known) if not known[name].is_internal]
            case other:
                assert_never(other)
        self.topic_ids = {topic.name: topic.topic_id for topic in found}
        there = [TopicPartition(topic.name, each.index) for topic in found for each in topic.partitions]
        if not isinstance(self._options.topics, AssignedPartitions):
            return sorted(there)
        for each in self._options.topics.partitions:
            if each not in there and each.topic in self.topic_ids:
                count = sum(one.topic == each.topic for one in there)
                reason = f"topic {each.topic!r} has partitions 0 to {count - 1}, not {each.partition}"
                raise BadOption("assign", None, reason)
        return [each for each in self._options.topics.partitions if each in there]

    async def _offsets(
        self, cluster: Cluster, partitions: list[TopicPartition], where: OffsetLimit, option: str
    ) -> Offsets:
        match where:
            case PartitionEnd.EARLIEST:
                return await self._ask(cluster, dict.fromkeys(partitions, "earliest"))
            case PartitionEnd.LATEST:
                return await self._ask(cluster, dict.fromkeys(partitions, "latest"))
            case AtTimestamp(timestamp_ms):
                return await self._by_time(cluster, dict.fromkeys(partitions, timestamp_ms), option)
            case SpecificTimestamps(timestamps_ms):
                check_complete(option, timestamps_ms, partitions)
                return await self._by_time(cluster, timestamps_ms, option)
            case SpecificOffsets(offsets):
                check_complete(option, offsets, partitions)
                edges: dict[TopicPartition, OffsetQuestion] = {
                    each: "latest" if offset == LATEST else "earliest"
                    for each, offset in offsets.items()
                    if offset in (LATEST, EARLIEST)
                }
                return {each: Offset(offset) for each, offset in offsets.items()} | await self._ask(cluster, edges)
            case other:
                assert_never(other)

    async def _by_time(self, cluster: Cluster, times: Mapping[TopicPartition, int], option: str) -> Offsets:
        found = await self._ask(cluster, times)
        beyond = [each for each, offset in found.items() if offset == NO_OFFSET]
        if beyond and option.startswith("starting") and not self._options.by_time_or_latest:
            reason = (
                f"{beyond[0]} has no record as young as {times[beyond[0]]}; name an earlier time, or set "
                "startingOffsetsByTimestampStrategy=latest to begin at the end there"
            )
            raise BadOption(option, None, reason)
        return found | await self._ask(cluster, dict.fromkeys(beyond, "latest"))

    async def _ask(self, cluster: Cluster, questions: Mapping[TopicPartition, OffsetQuestion]) -> Offsets:
        if not questions:
            return {}
        found = await list_offsets(cluster, questions, isolation=self._options.isolation, seconds=ASK_SECONDS_MAX)
        return {each: answer.offset for each, answer in found.items()}


async def _topics(cluster: Cluster, names: Iterable[str], may_miss: bool) -> list[Topic]:
    """Ask for these topics anew: partitions may have come since, or another topic of the same name."""
    cluster.watch(names)
    await cluster.refresh()
    found = []
    for name in names:
        try:
            found.append(await cluster.topic(name))
        except KafkaError as problem:
            if not (may_miss and problem.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                raise
    return found


def _explained(problem: KafkaError, seconds: float) -> KafkaError:
    if isinstance(problem, Unreachable):
        return Unreachable(f"{problem.message} It was tried for {seconds:g} s")
    if problem.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return KafkaError(problem.code, f"{problem.message.partition('. Create it')[0]}. Create it, or name another")
    return problem
