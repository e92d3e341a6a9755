"""AlterReplicaLogDirs: a partition stays in the folder where it lies; to ask for that one is no mistake."""

from collections.abc import Iterator

from riverlog.broker.requests.context import Context
from riverlog.broker.requests.portions import in_turns
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


async def alter_replica_log_dirs(request: AlterReplicaLogDirsRequest, context: Context) -> AlterReplicaLogDirsResponse:
    """Answer for each partition whether it lies in the log directory that is wanted."""
    may = context.allows_on_cluster(Operation.ALTER)
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    async for path, topic, index in in_turns(_each(request)):
        result = results.setdefault(topic, AlterReplicaLogDirTopicResult(topic_name=topic))
        if index is not None:
            name = TopicPartition(topic, index)
            code = _judge(path, name, context) if may else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            context.stats.failed(code)
            result.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code))
    return AlterReplicaLogDirsResponse(results=list(results.values()))


def _each(request: AlterReplicaLogDirsRequest) -> Iterator[tuple[str, str, int | None]]:
    """Name each log directory and topic, and then each of its partitions."""
    for directory in request.dirs:
        for topic in directory.topics:
            for index in (None, *topic.partitions):
                yield directory.path, topic.name, index


def _judge(path: str, name: TopicPartition, context: Context) -> ErrorCode:
    registry = context.services.registry
    wanted = next((directory for directory in registry.directories if directory.health.path == path), None)
    if wanted is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if wanted.health.offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    topic = context.image.topic(name.topic)
    if topic is None or not 0 <= name.partition < topic.partition_count:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    # One that nobody has used yet has no folder and counts as lying in the first one, as DescribeLogDirs says.
    directory = registry.directory_of.get(name) or registry.directories[0]
    return ErrorCode.NONE if directory is wanted else ErrorCode.INVALID_REQUEST
