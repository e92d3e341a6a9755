"""AlterPartitionReassignments and ListPartitionReassignments: partitions move to other brokers."""

from riverlog.broker.requests.context import Context
from riverlog.metadata.commands.reassignments import AlterReassignments, ListReassignments, Reassignment
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from riverlog.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)
from riverlog.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


async def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, context: Context
) -> AlterPartitionReassignmentsResponse:
    """Have each partition decided on its own; the move has begun when the response comes, and not ended."""
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change
    )
    try:
        if not context.allows_on_cluster(Operation.ALTER):
            raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Not allowed to move partitions.")
        changes = tuple(_change(topic, each) for topic in request.topics for each in topic.partitions)
        command = AlterReassignments(changes, request.allow_replication_factor_change)
        altered = await context.services.controller.submit(command)
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        response.error_code, response.error_message = refusal.code, refusal.message
        return response
    outcomes = iter(altered.outcomes)

    def result(index: int) -> ReassignablePartitionResponse:
        outcome = next(outcomes)
        context.stats.failed(outcome.code)
        return ReassignablePartitionResponse(index, outcome.code, outcome.message)

    response.responses = [
        ReassignableTopicResponse(topic.name, [result(each.partition_index) for each in topic.partitions])
        for topic in request.topics
    ]
    return response


async def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, context: Context
) -> ListPartitionReassignmentsResponse:
    """Return the partitions that are on the move, of those that are named, or of all."""
    asked = request.topics
    named = (
        None if asked is None else tuple((topic.name, index) for topic in asked for index in topic.partition_indexes)
    )
    try:
        if not context.allows_on_cluster(Operation.DESCRIBE):
            raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Not allowed to see moves of partitions.")
        found = await context.services.controller.submit(ListReassignments(named))
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        return ListPartitionReassignmentsResponse(error_code=refusal.code, error_message=refusal.message)
    topics: dict[str, list[OngoingPartitionReassignment]] = {}
    for name, partition in found:
        moving = OngoingPartitionReassignment(
            partition.index,
            list(partition.replicas),
            list(partition.rare.adding_replicas),
            list(partition.rare.removing_replicas),
        )
        topics.setdefault(name, []).append(moving)
    return ListPartitionReassignmentsResponse(
        topics=[OngoingTopicReassignment(name, partitions) for name, partitions in topics.items()]
    )


def _change(topic: ReassignableTopic, asked: ReassignablePartition) -> Reassignment:
    replicas = None if asked.replicas is None else tuple(NodeId(each) for each in asked.replicas)
    return Reassignment(topic.name, asked.partition_index, replicas)
