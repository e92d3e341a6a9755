"""AlterPartition: the leader of partitions has their in-sync replicas changed."""

from collections.abc import Iterable

from riverlog.broker.requests.context import Context
from riverlog.metadata.commands.in_sync import AlteredPartition, AlterPartitions, InSyncBroker, InSyncChange
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from riverlog.wire.messages.alter_partition import (
    AlterPartitionPartition,
    AlterPartitionPartitionResult,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopic,
    AlterPartitionTopicResult,
)


async def alter_partition(request: AlterPartitionRequest, context: Context) -> AlterPartitionResponse:
    """Have each partition decided on its own; the response comes when what was decided is committed."""
    if not context.allows_on_cluster(Operation.CLUSTER_ACTION):
        return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, context)
    changes = tuple(_change(topic, partition) for topic in request.topics for partition in topic.partitions)
    try:
        altered = await context.services.controller.submit(
            AlterPartitions(NodeId(request.broker_id), request.broker_epoch, changes)
        )
    except Refusal as refusal:
        return _refused(refusal.code, context)
    results = iter(altered.results)
    return AlterPartitionResponse(
        topics=[
            AlterPartitionTopicResult(topic.topic_id, list(_results(topic.partitions, results, context)))
            for topic in request.topics
        ]
    )


def _change(topic: AlterPartitionTopic, wanted: AlterPartitionPartition) -> InSyncChange:
    """Return what is wanted; up to version 2 brokers are named without the registration that was heard from."""
    named = [InSyncBroker(NodeId(each)) for each in wanted.new_isr]
    named += [InSyncBroker(NodeId(each.broker_id), each.broker_epoch) for each in wanted.new_isr_with_epochs]
    return InSyncChange(
        topic_id=topic.topic_id,
        partition=wanted.partition_index,
        leader_epoch=wanted.leader_epoch,
        partition_epoch=wanted.partition_epoch,
        isr=tuple(named),
        recovery=wanted.leader_recovery_state,
    )


def _results(
    asked: Iterable[AlterPartitionPartition], results: Iterable[AlteredPartition], context: Context
) -> Iterable[AlterPartitionPartitionResult]:
    for wanted, result in zip(asked, results, strict=False):
        context.stats.failed(result.code)
        partition = result.partition
        if partition is None:
            yield AlterPartitionPartitionResult(wanted.partition_index, result.code)
        else:
            yield AlterPartitionPartitionResult(
                wanted.partition_index,
                result.code,
                partition.leader,
                partition.leader_epoch,
                list(partition.isr),
                partition.rare.leader_recovery_state,
                partition.partition_epoch,
            )


def _refused(code: ErrorCode, context: Context) -> AlterPartitionResponse:
    context.stats.failed(code)
    return AlterPartitionResponse(error_code=code)
