"""DescribeLogDirs: which partition lies in which folder of this node, how large it is, and which are damaged."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice

from riverlog.broker.limits import DAMAGED_PARTITIONS_NAMED_MAX, REQUEST_PORTION
from riverlog.broker.requests.context import Context, HandlerResult, Later
from riverlog.broker.requests.portions import in_turn
from riverlog.metadata.image import PartitionImage
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import TopicPartition
from riverlog.partitions.directory_health import DirectoryHealth
from riverlog.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def describe_log_dirs(request: DescribeLogDirsRequest, context: Context) -> HandlerResult[DescribeLogDirsResponse]:
    """Describe every folder; one that is offline is named with its error and without partitions."""
    if not context.allows_on_cluster(Operation.DESCRIBE):
        context.stats.failed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    description, asked = _Description(context), _asked_for(request, context)
    some = tuple(islice(asked, REQUEST_PORTION))
    if len(some) == REQUEST_PORTION:
        return Later(_described_in_turns(description, chain(some, asked), context), holds_line=True)
    description.add(some)
    return description.response()


async def _described_in_turns(
    description: "_Description", asked: Iterator[tuple[TopicPartition, PartitionImage]], context: Context
) -> DescribeLogDirsResponse:
    while some := tuple(islice(asked, REQUEST_PORTION)):
        await in_turn(partial(description.add, some), context.services.portions)
    return description.response()


def _asked_for(request: DescribeLogDirsRequest, context: Context) -> Iterator[tuple[TopicPartition, PartitionImage]]:
    """Name the partitions that are asked for and that this node holds."""
    local = context.services.local_partitions
    if request.topics is None:
        yield from ((TopicPartition(topic.name, facts.index), facts) for topic, facts in local)
        return
    for name, wanted in {each.topic: each.partitions for each in request.topics}.items():
        if (topic := context.image.topic(name)) is not None:
            yield from ((TopicPartition(name, facts.index), facts) for facts in local.of(topic, sorted(set(wanted))))


class _Description:
    """What is known so far of each folder."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._directories = context.services.registry.health()
        self._topics: dict[str, dict[str, DescribeLogDirsTopic]] = {each.path: {} for each in self._directories}
        self._failed: set[str] = set()

    def add(self, asked: Sequence[tuple[TopicPartition, PartitionImage]]) -> None:
        """Describe some more partitions; none of them where it has to be done again."""
        assignment = self._context.services.assignment
        # A partition that nobody has used yet has no folder; it counts as empty where it will be.
        found = [(health, name) for name, facts in asked if (health := assignment.health_of(name, facts)) is not None]
        sizes = [self._size(health, name) for health, name in found]
        for (health, name), size in zip(found, sizes, strict=True):
            topic = self._topics[health.path].setdefault(name.topic, DescribeLogDirsTopic(name=name.topic))
            topic.partitions.append(DescribeLogDirsPartition(partition_index=name.partition, partition_size=size))

    def response(self) -> DescribeLogDirsResponse:
        """Return what is known now."""
        return DescribeLogDirsResponse(results=[self._result(health) for health in self._directories])

    def _result(self, health: DirectoryHealth) -> DescribeLogDirsResult:
        context = self._context
        room = self._room(health)
        if room is None:
            context.stats.failed(ErrorCode.KAFKA_STORAGE_ERROR)
            return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=health.path)
        total_bytes, usable_bytes = room
        return DescribeLogDirsResult(
            log_dir=health.path,
            topics=list(self._topics[health.path].values()),
            total_bytes=total_bytes,
            usable_bytes=usable_bytes,
            damaged=_damaged(health, context) if context.client.takes_credits else [],  # a client of ours
        )

    def _room(self, health: DirectoryHealth) -> tuple[int, int] | None:
        """Return the room in a directory; None where it cannot be looked at, which hides no other one."""
        if health.offline or health.path in self._failed:
            return None
        try:
            return health.room()
        except OSError as error:
            health.failed(error)
            return None

    def _size(self, health: DirectoryHealth, name: TopicPartition) -> int:
        services = self._context.services
        directory = services.registry.directory_of.get(name)
        if directory is None or health.offline or health.path in self._failed:
            return 0
        try:
            partition = services.replicas.get(name.topic, name.partition)
            return 0 if partition is None else partition.log.size
        except Refusal as refusal:
            if refusal.code is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
                return 0
        try:
            return directory.logs.size_of(name)
        except OSError as error:
            health.failed(error)
            self._failed.add(health.path)
            return 0


def _damaged(health: DirectoryHealth, context: Context) -> list[str]:
    """Name the open partitions of which some records are lost, whichever were asked for."""
    registry = context.services.registry
    directory = next(each for each in registry.directories if each.health is health)
    logs = ((str(partition.name), partition.log) for partition in registry.opened_in(directory))
    damaged = sorted(name for name, log in logs if log.quarantine.behind(log.log_start_offset))
    return damaged[:DAMAGED_PARTITIONS_NAMED_MAX]
