"""DescribeQuorum: who votes on the metadata, who leads, and how far each replica is, as the leader knows it."""

from riverlog.broker.requests.context import Context
from riverlog.controller.storage import METADATA_PARTITION
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_NODE, TopicPartition
from riverlog.raft.roles.leader import Leader
from riverlog.raft.roles.progress import ReplicaProgress
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
    """Return what the leader knows; another node refuses, so that whoever asks finds the leader."""
    quorum, now = context.services.controller.quorum, context.services.clock.monotonic()
    described = PartitionData(
        partition_index=METADATA_PARTITION.partition,
        leader_id=NO_NODE if quorum.leader_id is None else quorum.leader_id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
    )
    leader = quorum.role
    if not isinstance(leader, Leader):
        context.stats.failed(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        described.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return described
    own = ReplicaState(
        replica_id=quorum.key.id,
        replica_directory_id=quorum.key.directory_id or NO_UUID,
        log_end_offset=context.services.controller.end_offset,
        last_fetch_timestamp=context.now_ms,
        last_caught_up_timestamp=context.now_ms,
    )

    def state(progress: ReplicaProgress) -> ReplicaState:
        return ReplicaState(
            replica_id=progress.key.id,
            replica_directory_id=progress.key.directory_id or NO_UUID,
            log_end_offset=progress.end,
            last_fetch_timestamp=_wall_ms(progress.fetched_at, now, context),
            last_caught_up_timestamp=_wall_ms(progress.caught_up_at, now, context),
        )

    voters = [state(each) for each in leader.progress.voters.values()]
    votes = quorum.voters.includes(quorum.key)
    described.current_voters = sorted([*voters, *([own] if votes else [])], key=lambda each: each.replica_id)
    described.observers = [state(each) for each in leader.progress.observers.values()] + ([] if votes else [own])
    return described


def _wall_ms(instant: float | None, now: float, context: Context) -> int:
    """Return the time of day of an instant; -1 for none."""
    return -1 if instant is None else context.now_ms - round((now - instant) * 1000)


def _node(voter: Voter, context: Context) -> Node:
    """Return where a voter listens, as it says itself, or as its registration does."""
    image, node_id = context.image, voter.key.id
    listeners = [Listener(each.listener, each.host, each.port) for each in voter.endpoints]
    registered = image.controllers.get(node_id) or image.brokers.get(node_id)
    if not listeners and registered is not None:
        listeners = [Listener(each.listener, each.host, each.port) for each in registered.endpoints]
    return Node(node_id, listeners)
