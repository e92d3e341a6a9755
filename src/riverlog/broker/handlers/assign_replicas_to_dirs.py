"""AssignReplicasToDirs: a broker says in which of its log directories replicas lie."""

from riverlog.broker.requests.context import Context
from riverlog.metadata.commands.directories import AssignedReplica, AssignReplicas
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from riverlog.wire.messages.assign_replicas_to_dirs import (
    AssignedDirectoryResult,
    AssignedPartitionResult,
    AssignedTopicResult,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)


async def assign_replicas_to_dirs(
    request: AssignReplicasToDirsRequest, context: Context
) -> AssignReplicasToDirsResponse:
    """Have each replica decided on its own; the response comes when what was decided is committed."""
    if not context.allows_on_cluster(Operation.CLUSTER_ACTION):
        return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, context)
    replicas = tuple(
        AssignedReplica(directory.id, topic.topic_id, partition.partition_index)
        for directory in request.directories
        for topic in directory.topics
        for partition in topic.partitions
    )
    try:
        assigned = await context.services.controller.submit(
            AssignReplicas(NodeId(request.broker_id), request.broker_epoch, replicas)
        )
    except Refusal as refusal:
        return _refused(refusal.code, context)
    codes = iter(assigned.codes)

    def result(index: int) -> AssignedPartitionResult:
        code = next(codes)
        context.stats.failed(code)
        return AssignedPartitionResult(index, code)

    return AssignReplicasToDirsResponse(
        directories=[
            AssignedDirectoryResult(
                directory.id,
                [
                    AssignedTopicResult(topic.topic_id, [result(each.partition_index) for each in topic.partitions])
                    for topic in directory.topics
                ],
            )
            for directory in request.directories
        ]
    )


def _refused(code: ErrorCode, context: Context) -> AssignReplicasToDirsResponse:
    context.stats.failed(code)
    return AssignReplicasToDirsResponse(error_code=code)
