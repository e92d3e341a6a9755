"""DescribeQuorum: the cluster's metadata has one voter, this node, which leads and is never behind."""

from riverlog.broker.requests.context import Context
from riverlog.controller.storage import METADATA_PARTITION
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.raft.voters import Voter
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
        nodes=[_node(voter, context) for voter in context.services.controller.quorum.voters],
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


def _node(voter: Voter, context: Context) -> Node:
    """Return where a voter listens, as it says itself, or as its registration does."""
    image, node_id = context.image, voter.key.id
    listeners = [Listener(each.listener, each.host, each.port) for each in voter.endpoints]
    registered = image.controllers.get(node_id) or image.brokers.get(node_id)
    if not listeners and registered is not None:
        listeners = [Listener(each.listener, each.host, each.port) for each in registered.endpoints]
    return Node(node_id, listeners)
