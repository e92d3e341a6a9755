"""DescribeQuorum: the cluster's metadata has one voter, this node, which leads and is never behind."""

from riverlog.broker.requests.context import Context
from riverlog.controller.log import EPOCH, METADATA_PARTITION
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)


def describe_quorum(request: DescribeQuorumRequest, context: Context) -> DescribeQuorumResponse:
    """Describe the one log that is voted on."""
    if not context.allows_on_cluster(Operation.DESCRIBE):
        context.stats.failed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return DescribeQuorumResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return DescribeQuorumResponse(
        topics=[
            TopicData(
                topic.topic_name,
                [_partition(topic.topic_name, each.partition_index, context) for each in topic.partitions],
            )
            for topic in request.topics
        ],
        nodes=[_this_node(context)],
    )


def _partition(topic: str, index: int, context: Context) -> PartitionData:
    if (topic, index) != METADATA_PARTITION:
        context.stats.failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return PartitionData(
            partition_index=index,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=f"Only {METADATA_PARTITION} is voted on.",
        )
    end_offset = context.services.metadata.end_offset
    voter = ReplicaState(
        replica_id=context.services.node_id,
        replica_directory_id=context.image.brokers[context.services.node_id].log_dirs[0],
        log_end_offset=end_offset,
        last_fetch_timestamp=context.now_ms,
        last_caught_up_timestamp=context.now_ms,
    )
    return PartitionData(
        partition_index=index,
        leader_id=context.services.node_id,
        leader_epoch=EPOCH,
        high_watermark=end_offset,
        current_voters=[voter],
    )


def _this_node(context: Context) -> Node:
    here = context.image.brokers[context.services.node_id]
    return Node(here.id, [Listener(each.listener, each.host, each.port) for each in here.endpoints])
