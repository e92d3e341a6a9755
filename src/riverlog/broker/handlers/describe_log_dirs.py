"""DescribeLogDirs: which partition lies in which folder of this node, how large it is, and which are damaged."""

from collections.abc import Iterator

from riverlog.broker.limits import DAMAGED_PARTITIONS_NAMED_MAX
from riverlog.broker.requests.context import Context
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


def describe_log_dirs(request: DescribeLogDirsRequest, context: Context) -> DescribeLogDirsResponse:
    """Describe every folder; one that is offline is named with its error and without partitions."""
    if not context.allows_on_cluster(Operation.DESCRIBE):
        context.stats.failed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    directories = context.services.registry.health()
    partitions: dict[str, list[TopicPartition]] = {health.path: [] for health in directories}
    for name, facts in _asked_for(request, context):
        # A partition that nobody has used yet has no folder; it counts as empty where it will be.
        if (health := context.services.assignment.health_of(name, facts)) is not None:
            partitions[health.path].append(name)
    return DescribeLogDirsResponse(
        results=[_result(health, partitions[health.path], context) for health in directories]
    )


def _asked_for(request: DescribeLogDirsRequest, context: Context) -> Iterator[tuple[TopicPartition, PartitionImage]]:
    """Name the partitions that are asked for and that this node holds."""
    local = context.services.local_partitions
    if request.topics is None:
        yield from ((TopicPartition(topic.name, facts.index), facts) for topic, facts in local)
        return
    for name, wanted in {each.topic: each.partitions for each in request.topics}.items():
        if (topic := context.image.topic(name)) is not None:
            yield from ((TopicPartition(name, facts.index), facts) for facts in local.of(topic, sorted(set(wanted))))


def _result(health: DirectoryHealth, names: list[TopicPartition], context: Context) -> DescribeLogDirsResult:
    if health.offline:
        context.stats.failed(ErrorCode.KAFKA_STORAGE_ERROR)
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=health.path)
    topics: dict[str, DescribeLogDirsTopic] = {}
    try:
        for name in names:
            topic = topics.setdefault(name.topic, DescribeLogDirsTopic(name=name.topic))
            topic.partitions.append(
                DescribeLogDirsPartition(partition_index=name.partition, partition_size=_size(name, context))
            )
        total_bytes, usable_bytes = health.room()
    except OSError as error:  # one directory that cannot be looked at hides no other
        health.failed(error)
        context.stats.failed(ErrorCode.KAFKA_STORAGE_ERROR)
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=health.path)
    return DescribeLogDirsResult(
        log_dir=health.path,
        topics=list(topics.values()),
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
        damaged=_damaged(health, context) if context.client.takes_credits else [],  # a client of ours
    )


def _damaged(health: DirectoryHealth, context: Context) -> list[str]:
    """Name the open partitions of which some records are lost, whichever were asked for."""
    registry = context.services.registry
    directory = next(each for each in registry.directories if each.health is health)
    logs = ((str(partition.name), partition.log) for partition in registry.opened_in(directory))
    damaged = sorted(name for name, log in logs if log.quarantine.behind(log.log_start_offset))
    return damaged[:DAMAGED_PARTITIONS_NAMED_MAX]


def _size(name: TopicPartition, context: Context) -> int:
    services = context.services
    directory = services.registry.directory_of.get(name)
    if directory is None:
        return 0
    try:
        partition = services.replicas.get(name.topic, name.partition)
    except Refusal as refusal:
        return directory.logs.size_of(name) if refusal.code is ErrorCode.NOT_LEADER_OR_FOLLOWER else 0
    return 0 if partition is None else partition.log.size
