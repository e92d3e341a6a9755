"""Leaders changing their in-sync replicas, as far as the scenarios leave something out."""

import pytest

from riverlog.metadata.commands.in_sync import ANY_EPOCH, AlterPartitions, InSyncBroker, InSyncChange, check_epoch
from riverlog.metadata.commands.liveness import Woken
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from tests.unit.metadata.active_cluster import ActiveCluster


def change(cluster: ActiveCluster, *node_ids: int, partition: int = 0, recovery: int = 0) -> InSyncChange:
    known = cluster.partition("orders", partition)
    isr = tuple(InSyncBroker(NodeId(each), cluster.broker(each).epoch) for each in node_ids)
    topic = cluster.topic("orders")
    return InSyncChange(topic.id, partition, known.leader_epoch, known.partition_epoch, isr, recovery)


def test_the_reply_is_what_the_record_makes_of_the_partition() -> None:
    cluster = ActiveCluster(None, None, None)
    cluster.create("orders", 2, (1, 2, 3), (1, 2, 3))
    command = AlterPartitions(
        NodeId(1), cluster.broker(1).epoch, (change(cluster, 1, 3), change(cluster, 1, partition=1))
    )
    results = cluster.do(command).results
    for number, result in enumerate(results):
        known, told = cluster.partition("orders", number), result.partition
        assert result.code is ErrorCode.NONE
        assert (told.isr, told.leader, told.leader_epoch, told.partition_epoch) == known[2:6]


def test_a_recovery_that_is_no_kafkas_is_refused() -> None:
    cluster = ActiveCluster(None)
    cluster.create("orders", 1, (1,))
    for recovery in (-1, 2):
        command = AlterPartitions(NodeId(1), cluster.broker(1).epoch, (change(cluster, 1, recovery=recovery),))
        assert cluster.do(command).results[0].code is ErrorCode.INVALID_REQUEST


def test_nobody_is_in_sync_who_is_on_its_way_out() -> None:
    cluster = ActiveCluster(None, None, None)
    cluster.create("orders", 3, (1, 2, 3), (1, 2, 3), (1, 2, 3))
    alter = AlterPartitions(NodeId(1), cluster.broker(1).epoch, (change(cluster, 1),))
    assert cluster.do(alter).results[0].code is ErrorCode.NONE
    cluster.seconds = 9
    cluster.beat(1)
    cluster.beat(3)
    cluster.do(Woken(partitions_max=1))
    assert not cluster.broker(2).fenced
    alter = AlterPartitions(NodeId(1), cluster.broker(1).epoch, (change(cluster, 1, 2),))
    assert cluster.do(alter).results[0].code is ErrorCode.INELIGIBLE_REPLICA


def test_a_broker_is_known_by_its_epoch() -> None:
    broker = ActiveCluster(None).broker(1)
    check_epoch(broker, broker.id, broker.epoch)
    for known, epoch in ((None, broker.epoch), (broker, broker.epoch - 1), (broker, ANY_EPOCH)):
        with pytest.raises(Refusal) as refused:
            check_epoch(known, broker.id, epoch)
        assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH
