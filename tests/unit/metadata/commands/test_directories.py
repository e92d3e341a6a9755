"""Where replicas lie, as far as the scenarios leave something out."""

from riverlog.metadata.commands.directories import AssignedReplica, AssignReplicas
from riverlog.metadata.image import LOST_DIRECTORY
from riverlog.metadata.records import PartitionChangeRecord
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_NODE, NodeId
from tests.unit.metadata.active_cluster import ActiveCluster


def assign(cluster: ActiveCluster, *replicas: AssignedReplica) -> tuple[ErrorCode, ...]:
    codes: tuple[ErrorCode, ...] = cluster.do(AssignReplicas(NodeId(1), cluster.broker(1).epoch, replicas)).codes
    return codes


def test_a_replica_that_is_named_twice_lies_nowhere_new() -> None:
    cluster = ActiveCluster(None)
    topic_id = cluster.create("orders", 1, (1,))
    first, second = cluster.broker(1).log_dirs
    codes = assign(cluster, AssignedReplica(first, topic_id, 0), AssignedReplica(second, topic_id, 0))
    assert codes == (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST)


def test_a_partition_that_was_lost_is_led_again_where_it_is_found() -> None:
    cluster = ActiveCluster(None)
    topic_id = cluster.create("orders", 1, (1,))
    lost = PartitionChangeRecord(0, topic_id, leader=NO_NODE, directories=(LOST_DIRECTORY,))
    cluster.machine.apply(lost)
    assert assign(cluster, AssignedReplica(cluster.broker(1).log_dirs[1], topic_id, 0)) == (ErrorCode.NONE,)
    assert cluster.partition("orders").leader == 1
