"""DescribeQuorum: the cluster's metadata has one voter, this node, which leads and is never behind."""

from riverlog.broker.requests.context import Context
from riverlog.controller.storage import METADATA_PARTITION
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)
from riverlog.wire.types import NO_UUID


def describe_quorum(request: DescribeQuorumRequest, context: Context) -> DescribeQuorumResponse:
    """Describe the one log that is voted on."""
    if not context.allows_on_cluster(Operation.DESCRIBE):
        context.stats.failed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return DescribeQuorumResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    metadata = _metadata(context)
    return DescribeQuorumResponse(
        topics=[
            TopicData(
                topic.topic_name,
                [
                    metadata if name == METADATA_PARTITION else _unknown(name, context)
                    for each in topic.partitions
                    for name in (TopicPartition(topic.topic_name, each.partition_index),)
                ],
            )
            for topic in request.topics
        ],
        nodes=[_this_node(context)],
    )


def _unknown(name: TopicPartition, context: Context) -> PartitionData:
    context.stats.failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return PartitionData(
        partition_index=name.partition,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message=f"Only {METADATA_PARTITION} is voted on.",
    )


def _metadata(context: Context) -> PartitionData:
    controller = context.services.controller
    quorum = controller.quorum
    return PartitionData(
        partition_index=METADATA_PARTITION.partition,
        leader_id=context.services.node_id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        current_voters=[
            ReplicaState(
                replica_id=voter.key.id,
                replica_directory_id=voter.key.directory_id or NO_UUID,
                log_end_offset=controller.end_offset,
                last_fetch_timestamp=context.now_ms,
                last_caught_up_timestamp=context.now_ms,
            )
            for voter in quorum.voters
        ],
    )


def _this_node(context: Context) -> Node:
    here = context.image.brokers[context.services.node_id]
    return Node(here.id, [Listener(each.listener, each.host, each.port) for each in here.endpoints])
