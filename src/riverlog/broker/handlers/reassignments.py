"""AlterPartitionReassignments and ListPartitionReassignments: on a node that is alone nothing can move.

A partition may be sent to where it is, which changes nothing; every other place is refused by name.
"""

from riverlog.broker.requests.context import Context
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from riverlog.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, context: Context
) -> AlterPartitionReassignmentsResponse:
    """Answer each partition on its own."""
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change
    )
    if not context.allows_on_cluster(Operation.ALTER):
        context.stats.failed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        response.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        response.error_message = "Not allowed to move partitions."
        return response
    response.responses = [
        ReassignableTopicResponse(topic.name, [_result(topic.name, part, context) for part in topic.partitions])
        for topic in request.topics
    ]
    return response


def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, context: Context
) -> ListPartitionReassignmentsResponse:
    """Return no reassignments: on one node nothing can move."""
    if not context.allows_on_cluster(Operation.DESCRIBE):
        context.stats.failed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return ListPartitionReassignmentsResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="Not allowed to see moves of partitions."
        )
    return ListPartitionReassignmentsResponse()


def _result(topic: str, asked: ReassignablePartition, context: Context) -> ReassignablePartitionResponse:
    try:
        _check_unmoved(topic, asked, context)
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        return ReassignablePartitionResponse(asked.partition_index, refusal.code, refusal.message)
    return ReassignablePartitionResponse(asked.partition_index)


def _check_unmoved(topic: str, asked: ReassignablePartition, context: Context) -> None:
    known = context.image.topic(topic)
    if known is None or not 0 <= asked.partition_index < known.partition_count:
        raise Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {asked.partition_index} of {topic!r}."
        )
    if asked.replicas is None:
        raise Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "The partition is not on the move.")
    if tuple(asked.replicas) != known.partition(asked.partition_index).replicas:
        node_id = context.services.node_id
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Broker {node_id} is alone in its cluster: partitions have one replica, on broker {node_id}.",
        )
