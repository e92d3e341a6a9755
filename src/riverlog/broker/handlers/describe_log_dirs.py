"""DescribeLogDirs: which partition lies in which folder of this node, and how large it is."""

from collections.abc import Iterator

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
    replicas = context.services.replicas
    partitions: dict[str, list[TopicPartition]] = {volume.path: [] for volume in replicas.volumes()}
    for name, facts in _asked_for(request, context):
        # A partition that nobody has used yet has no folder; it counts as empty where it will be.
        if (volume := replicas.volume_of(name, facts)) is not None:
            partitions[volume.path].append(name)
    return DescribeLogDirsResponse(
        results=[_result(volume, partitions[volume.path], context) for volume in replicas.volumes()]
    )


def _asked_for(request: DescribeLogDirsRequest, context: Context) -> Iterator[tuple[TopicPartition, PartitionImage]]:
    """Name the partitions that are asked for and that this node holds."""
    node_id = context.services.node_id
    wanted = None if request.topics is None else {each.topic: set(each.partitions) for each in request.topics}
    for topic in context.image.all_topics():
        if wanted is not None and topic.name not in wanted:
            continue
        for partition in topic.partitions:
            if node_id in partition.replicas and (wanted is None or partition.index in wanted[topic.name]):
                yield TopicPartition(topic.name, partition.index), partition


def _result(volume: DirectoryHealth, names: list[TopicPartition], context: Context) -> DescribeLogDirsResult:
    if volume.offline:
        context.stats.failed(ErrorCode.KAFKA_STORAGE_ERROR)
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=volume.path)
    topics: dict[str, DescribeLogDirsTopic] = {}
    try:
        for name in names:
            topic = topics.setdefault(name.topic, DescribeLogDirsTopic(name=name.topic))
            topic.partitions.append(
                DescribeLogDirsPartition(partition_index=name.partition, partition_size=_size(name, context))
            )
        total_bytes, usable_bytes = volume.room()
    except OSError as error:  # one directory that cannot be looked at hides no other
        volume.failed(error)
        context.stats.failed(ErrorCode.KAFKA_STORAGE_ERROR)
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=volume.path)
    return DescribeLogDirsResult(
        log_dir=volume.path, topics=list(topics.values()), total_bytes=total_bytes, usable_bytes=usable_bytes
    )


def _size(name: TopicPartition, context: Context) -> int:
    replicas = context.services.replicas
    if replicas.home_of(name) is None:
        return 0
    try:
        partition = replicas.get(name.topic, name.partition)
    except Refusal:
        return 0
    return 0 if partition is None else partition.log.size
