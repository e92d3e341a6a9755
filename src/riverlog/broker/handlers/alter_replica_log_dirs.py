"""AlterReplicaLogDirs: a partition stays in the folder where it lies; to ask for that one is no mistake."""

from riverlog.broker.requests.context import Context
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def alter_replica_log_dirs(request: AlterReplicaLogDirsRequest, context: Context) -> AlterReplicaLogDirsResponse:
    """Answer for each partition whether it lies in the log directory that is wanted."""
    may = context.allows_on_cluster(Operation.ALTER)
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    for folder in request.dirs:
        for topic in folder.topics:
            result = results.setdefault(topic.name, AlterReplicaLogDirTopicResult(topic_name=topic.name))
            for index in topic.partitions:
                name = TopicPartition(topic.name, index)
                code = _judge(folder.path, name, context) if may else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                context.stats.failed(code)
                result.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code))
    return AlterReplicaLogDirsResponse(results=list(results.values()))


def _judge(path: str, name: TopicPartition, context: Context) -> ErrorCode:
    registry = context.services.registry
    wanted = next((directory for directory in registry.directories if directory.health.path == path), None)
    if wanted is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if wanted.health.offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    topic = context.image.topic(name.topic)
    if topic is None or all(name.partition != partition.index for partition in topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    # One that nobody has used yet has no folder and counts as lying in the first one, as DescribeLogDirs says.
    directory = registry.directory_of.get(name) or registry.directories[0]
    return ErrorCode.NONE if directory is wanted else ErrorCode.INVALID_REQUEST
